"""Attempt 2: above the threshold, prepare a decode batch in the worker, and keep speculation from the target.

Attempt 1 found that nobody had set `input_ids`, and that the target must not see `spec_info`. So do all of what
`ScheduleBatch.prepare_for_decode` would, with the allocation of `_draft_preprocess_decode`. Its backup of the allocator
isn't needed: drafted slots are given back, those of a plain step are kept.
"""

from typing import Any

import torch
from sglang.srt.managers.scheduler import GenerationBatchResult
from sglang.srt.mem_cache.common import alloc_token_slots
from sglang.srt.speculative.eagle_worker import EAGLEWorker
from sglang.srt.speculative.spec_info import SpeculativeAlgorithm

from harness.toggle.settings import Settings

WORKER = "v1"


class PreparedDecodeWorker(EAGLEWorker):  # type: ignore[misc]
    """v1, with decode batches of its own making above the threshold."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.threshold = Settings.read().policy.threshold

    def forward_batch_generation(self, batch: Any) -> GenerationBatchResult:
        """One step of a `ScheduleBatch`."""
        prefill = batch.forward_mode.is_extend() or batch.is_extend_in_batch
        if prefill or batch.batch_size() <= self.threshold:
            return super().forward_batch_generation(batch)
        self.prepare_decode(batch)
        model_worker_batch = batch.get_model_worker_batch()
        model_worker_batch.spec_info = None
        model_worker_batch.spec_algorithm = SpeculativeAlgorithm.NONE
        result = self.target_worker.forward_batch_generation(model_worker_batch)
        for req, token in zip(batch.reqs, result.next_token_ids.tolist(), strict=True):
            req.output_ids.append(token)
            req.check_finished()
        batch.spec_info.bonus_tokens = result.next_token_ids  # the next spec step drafts from here
        return result

    def prepare_decode(self, batch: Any) -> None:
        """Input, KV slot and length of one token for each request."""
        batch.input_ids = batch.spec_info.bonus_tokens.to(torch.int64)
        out_cache_loc, _ = alloc_token_slots(batch.tree_cache, batch.batch_size())
        batch.req_to_token_pool.write((batch.req_pool_indices, batch.seq_lens), out_cache_loc.to(torch.int32))
        batch.out_cache_loc = out_cache_loc
        for req in batch.reqs:
            req.kv_committed_len += 1
            req.kv_allocated_len += 1
        batch.seq_lens.add_(1)
        batch.seq_lens_cpu.add_(1)
        batch.seq_lens_sum = int(batch.seq_lens_cpu.sum())


def worker(toggled: type) -> type:
    """The class to install; the fixed toggle's isn't needed."""
    return PreparedDecodeWorker
