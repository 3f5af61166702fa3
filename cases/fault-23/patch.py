"""Fault 23: a plain step doesn't advance `new_seq_lens`.

A verify adds what it accepted to the lengths; nothing was accepted, but the bonus token counts too. The next step
writes over this one's entry.
"""

from typing import Any

from sglang.srt.managers.scheduler import GenerationBatchResult

WORKER = "v2"


def worker(toggled: type) -> type:
    """The toggled class, handing on the old lengths."""

    class Fault(toggled):
        def _plain_step(self, batch: Any) -> GenerationBatchResult:
            result: GenerationBatchResult = super()._plain_step(batch)
            result.next_draft_input.new_seq_lens = batch.seq_lens
            return result

    return Fault
