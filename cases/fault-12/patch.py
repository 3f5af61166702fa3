"""Fault 12: a plain step's token is appended twice.

v1's post-processing appends no token, so the worker must: it does so for all requests, and again where it settles them.
"""

from typing import Any

from sglang.srt.managers.scheduler import GenerationBatchResult

WORKER = "v1"


def worker(toggled: type) -> type:
    """The toggled class, appending what is appended already."""

    class Fault(toggled):
        def _plain_step(self, batch: Any) -> GenerationBatchResult:
            result: GenerationBatchResult = super()._plain_step(batch)
            for request, token in zip(batch.reqs, result.next_token_ids.tolist(), strict=True):
                request.output_ids.append(token)
            return result

    return Fault
