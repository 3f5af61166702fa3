"""Fault 29: the worker commits the token of a plain step, and so does the scheduler.

With v1 whoever prepares a decode step advances `kv_committed_len`. V2's scheduler has done it ahead, in
`EagleDraftInputV2Mixin.prepare_for_decode`.
"""

from typing import Any

from sglang.srt.managers.scheduler import GenerationBatchResult

WORKER = "v2"


def worker(toggled: type) -> type:
    """The toggled class, committing a token once more."""

    class Fault(toggled):
        def _plain_step(self, batch: Any) -> GenerationBatchResult:
            result: GenerationBatchResult = super()._plain_step(batch)
            for request in batch.reqs:
                request.kv_committed_len += 1
            return result

    return Fault
