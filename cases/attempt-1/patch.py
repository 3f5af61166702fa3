"""Attempt 1: above the threshold, let the target alone decode.

v1's worker has a forward of the target alone already, `forward_target_extend`: it builds the worker batch, asks for the
hidden states that the draft lives on, and samples. A decode step needs the same. What is missing before it are KV slots
and lengths, which `ScheduleBatch.prepare_for_decode` leaves to a speculative worker.
"""

from typing import Any

from sglang.srt.managers.scheduler import GenerationBatchResult
from sglang.srt.mem_cache.common import alloc_for_decode
from sglang.srt.speculative.eagle_worker import EAGLEWorker

from harness.toggle.settings import Settings

WORKER = "v1"


class TargetAloneWorker(EAGLEWorker):  # type: ignore[misc]
    """v1, with the target alone above the threshold."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.threshold = Settings.read().policy.threshold

    def forward_batch_generation(self, batch: Any) -> GenerationBatchResult:
        """One step of a `ScheduleBatch`."""
        prefill = batch.forward_mode.is_extend() or batch.is_extend_in_batch
        if prefill or batch.batch_size() <= self.threshold:
            return super().forward_batch_generation(batch)
        return self.forward_target_decode(batch)

    def forward_target_decode(self, batch: Any) -> GenerationBatchResult:
        """One token for each request."""
        batch.out_cache_loc = alloc_for_decode(batch, token_per_req=1)
        batch.seq_lens.add_(1)
        batch.seq_lens_cpu.add_(1)
        batch.seq_lens_sum = int(batch.seq_lens_cpu.sum())
        logits_output, next_token_ids, _, can_run_cuda_graph = self.forward_target_extend(batch)
        for req, token in zip(batch.reqs, next_token_ids.tolist(), strict=True):
            req.kv_committed_len += 1
            req.kv_allocated_len += 1
            req.output_ids.append(token)
            req.check_finished()
        batch.spec_info.bonus_tokens = next_token_ids  # the next spec step drafts from here
        return GenerationBatchResult(
            logits_output=logits_output, next_token_ids=next_token_ids, can_run_cuda_graph=can_run_cuda_graph
        )


def worker(toggled: type) -> type:
    """The class to install; the fixed toggle's isn't needed."""
    return TargetAloneWorker
