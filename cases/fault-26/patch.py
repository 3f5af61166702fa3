"""Fault 26: the draft follows with the tokens that the target read, not with those that it sampled.

The draft's entry at p is of token p + 1 and the target's hidden state at p.
"""

from dataclasses import replace
from typing import Any

from sglang.srt.speculative.eagle_info import EagleDraftInput

from harness.toggle import schedule
from harness.toggle.plain_draft import PlainDraft
from harness.toggle.plain_target import Decoded, attributes

WORKER = "v2"


class TokenBehind(PlainDraft):
    """Gives the draft the target's input."""

    def follow(self, decoded: Decoded) -> EagleDraftInput:
        """Write the draft's KV and propose the next tokens."""
        read = replace(decoded, result=replace(decoded.result, next_token_ids=decoded.batch.input_ids))
        return replace(super().follow(read), bonus_tokens=decoded.tokens)


def worker(toggled: type) -> type:
    """The toggled class, with the draft a token behind."""

    class Fault(toggled):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            with attributes(schedule, PlainDraft=TokenBehind):
                super().__init__(*args, **kwargs)

    return Fault
