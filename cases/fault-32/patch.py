"""Fault 32: a plain result carries no more than the next plain step needs.

The future map copies every field of `next_draft_input` into buffers of its own, whatever the next step is.
"""

from typing import Any

from sglang.srt.managers.scheduler import GenerationBatchResult
from sglang.srt.speculative.eagle_info import EagleDraftInput

WORKER = "v2"


def worker(toggled: type) -> type:
    """The toggled class, with bonus tokens and lengths alone."""

    class Fault(toggled):
        def _plain_step(self, batch: Any) -> GenerationBatchResult:
            result: GenerationBatchResult = super()._plain_step(batch)
            left = result.next_draft_input
            result.next_draft_input = EagleDraftInput(
                bonus_tokens=left.bonus_tokens, new_seq_lens=left.new_seq_lens, verify_done=left.verify_done
            )
            return result

    return Fault
