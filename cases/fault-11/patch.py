"""Fault 11: `batch.spec_info` is None while speculation is off, and put back when the worker next needs it.

`ScheduleBatch.merge_batch` and `filter_batch` skip a `spec_info` that is None: requests that join or leave meanwhile
are missing from what is put back, or are still in it.
"""

from typing import Any

from sglang.srt.managers.scheduler import GenerationBatchResult

WORKER = "v1"


def worker(toggled: type) -> type:
    """The toggled class, keeping `spec_info` to itself between plain steps."""

    class Fault(toggled):
        _kept: Any = None

        def forward_batch_generation(self, batch: Any) -> GenerationBatchResult:
            if batch.spec_info is None and batch.forward_mode.is_decode():
                batch.spec_info = self._kept
            return super().forward_batch_generation(batch)

        def _plain_step(self, batch: Any) -> GenerationBatchResult:
            result = super()._plain_step(batch)
            self._kept, batch.spec_info = batch.spec_info, None
            return result

    return Fault
