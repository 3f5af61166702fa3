"""Fault 18: the next step starts from the token that this one read, not from the one that it sampled.

`bonus_tokens` is what a step is given and what it leaves; a plain step hands on what it was given.
"""

from typing import Any

from sglang.srt.managers.scheduler import GenerationBatchResult

WORKER = "v2"


def worker(toggled: type) -> type:
    """The toggled class, handing on the old bonus tokens."""

    class Fault(toggled):
        def _plain_step(self, batch: Any) -> GenerationBatchResult:
            result: GenerationBatchResult = super()._plain_step(batch)
            result.next_draft_input.bonus_tokens = batch.spec_info.bonus_tokens
            return result

    return Fault
