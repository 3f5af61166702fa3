"""Attempt 3: above the threshold, hand the target a batch that knows nothing of speculation.

Attempts 1 and 2 interfered with the batch and broke it. The model worker decodes plain batches all the time, so it is
enough to clear what makes this one speculative, on the worker batch only: the scheduler's own keeps the draft's state.
"""

from typing import Any

from sglang.srt.managers.scheduler import GenerationBatchResult
from sglang.srt.speculative.eagle_worker import EAGLEWorker
from sglang.srt.speculative.spec_info import SpeculativeAlgorithm

from harness.toggle.settings import Settings

WORKER = "v1"


class ClearedBatchWorker(EAGLEWorker):  # type: ignore[misc]
    """v1, with speculation cleared from the target's batch above the threshold."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.threshold = Settings.read().policy.threshold

    def forward_batch_generation(self, batch: Any) -> GenerationBatchResult:
        """One step of a `ScheduleBatch`."""
        prefill = batch.forward_mode.is_extend() or batch.is_extend_in_batch
        if prefill or batch.batch_size() <= self.threshold:
            return super().forward_batch_generation(batch)
        model_worker_batch = batch.get_model_worker_batch()
        model_worker_batch.spec_info = None
        model_worker_batch.spec_algorithm = SpeculativeAlgorithm.NONE
        return self.target_worker.forward_batch_generation(model_worker_batch)


def worker(toggled: type) -> type:
    """The class to install; the fixed toggle's isn't needed."""
    return ClearedBatchWorker
