"""Fault 14: a plain step allocates slot by slot where pages are larger than a slot.

`alloc_token_slots` on a paged allocator gives whole pages from their first slot on, whatever page the request was in
the middle of: what `alloc_for_decode` asks `get_last_loc` for.
"""

from typing import Any

import torch
from sglang.srt.mem_cache.common import alloc_token_slots
from sglang.srt.speculative.spec_info import SpeculativeAlgorithm

from harness.toggle.plain_target import Decoded

WORKER = "v1"


def worker(toggled: type) -> type:
    """The toggled class, with an allocation that knows no pages."""

    class Fault(toggled):
        def _decode(self, batch: Any) -> Decoded:
            slots = alloc_token_slots(batch.tree_cache, batch.batch_size())
            batch.req_to_token_pool.write((batch.req_pool_indices, batch.seq_lens.clone()), slots.to(torch.int32))
            batch.input_ids, batch.out_cache_loc = batch.spec_info.bonus_tokens.to(torch.int64), slots
            for request in batch.reqs:
                request.decode_batch_idx += 1
                request.kv_committed_len += 1
                request.kv_allocated_len += 1
            for lengths in (batch.seq_lens, batch.seq_lens_cpu, batch.orig_seq_lens):
                lengths.add_(1)
            batch.seq_lens_sum = int(batch.seq_lens_cpu.sum())
            worker_batch = batch.get_model_worker_batch()
            worker_batch.spec_algorithm, worker_batch.spec_info = SpeculativeAlgorithm.NONE, None
            return self.toggle.target.decode(worker_batch)

    return Fault
