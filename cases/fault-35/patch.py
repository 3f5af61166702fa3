"""Fault 35: a plain step advances the lengths of the worker batch only.

That is V2's way, whose scheduler is told the new lengths with the result. v1's worker has to advance the scheduler's
own.
"""

from typing import Any

import torch
from sglang.srt.mem_cache.common import alloc_for_decode
from sglang.srt.speculative.spec_info import SpeculativeAlgorithm

from harness.toggle.plain_target import Decoded

WORKER = "v1"


def worker(toggled: type) -> type:
    """The toggled class, with lengths that the scheduler never hears of."""

    class Fault(toggled):
        def _decode(self, batch: Any) -> Decoded:
            batch.input_ids = batch.spec_info.bonus_tokens.to(torch.int64)
            batch.out_cache_loc = alloc_for_decode(batch, token_per_req=1)
            for request in batch.reqs:
                request.decode_batch_idx += 1
                request.kv_committed_len += 1
                request.kv_allocated_len += 1
            decode = batch.get_model_worker_batch()
            decode.seq_lens, decode.seq_lens_cpu = batch.seq_lens + 1, batch.seq_lens_cpu + 1
            decode.seq_lens_sum = int(decode.seq_lens_cpu.sum())
            decode.spec_algorithm, decode.spec_info = SpeculativeAlgorithm.NONE, None
            return self.toggle.target.decode(decode)

    return Fault
