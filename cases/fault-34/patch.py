"""Fault 34: `spec_info` is filtered once more after a plain step.

Its rows are those of the requests that go on already; places in the whole batch now name other rows, or none.
"""

from typing import Any

from sglang.srt.managers.scheduler import GenerationBatchResult

WORKER = "v1"


def worker(toggled: type) -> type:
    """The toggled class, filtering twice."""

    class Fault(toggled):
        def _plain_step(self, batch: Any) -> GenerationBatchResult:
            result: GenerationBatchResult = super()._plain_step(batch)
            running = [row for row, request in enumerate(batch.reqs) if not request.finished()]
            rows = batch.spec_info.bonus_tokens.new_tensor(running)
            batch.spec_info.filter_batch(rows, has_been_filtered=False)
            return result

    return Fault
