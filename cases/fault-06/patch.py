"""Fault 6: `kv_committed_len` isn't advanced on a plain step.

With a preparation of the worker's own, in place of `ScheduleBatch.prepare_for_decode`, one of the lengths is forgotten.
"""

from typing import Any

import torch
from sglang.srt.mem_cache.common import alloc_for_decode
from sglang.srt.speculative.spec_info import SpeculativeAlgorithm

from harness.toggle.plain_target import Decoded

WORKER = "v1"


def worker(toggled: type) -> type:
    """The toggled class, advancing all lengths but one."""

    class Fault(toggled):
        def _decode(self, batch: Any) -> Decoded:
            batch.input_ids = batch.spec_info.bonus_tokens.to(torch.int64)
            batch.out_cache_loc = alloc_for_decode(batch, token_per_req=1)
            for request in batch.reqs:
                request.decode_batch_idx += 1
                request.kv_allocated_len += 1
            for lengths in (batch.seq_lens, batch.seq_lens_cpu, batch.orig_seq_lens):
                lengths.add_(1)
            batch.seq_lens_sum = int(batch.seq_lens_cpu.sum())
            worker_batch = batch.get_model_worker_batch()
            worker_batch.spec_algorithm, worker_batch.spec_info = SpeculativeAlgorithm.NONE, None
            return self.toggle.target.decode(worker_batch)

    return Fault
