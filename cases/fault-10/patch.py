"""Fault 10: a plain result keeps the stride of spec steps.

V2's post-processing takes request i's tokens from `next_token_ids[i * stride:]`; a plain step returns one a request,
and its result says four.
"""

from typing import Any

from sglang.srt.managers.scheduler import GenerationBatchResult

WORKER = "v2"


def worker(toggled: type) -> type:
    """The toggled class, with the worker's own number of draft tokens on every result."""

    class Fault(toggled):
        def _plain_step(self, batch: Any) -> GenerationBatchResult:
            result: GenerationBatchResult = super()._plain_step(batch)
            result.speculative_num_draft_tokens = self.speculative_num_draft_tokens
            return result

    return Fault
