"""Fault 39: with strategy plain the draft catches up before spec steps only.

A plain stretch that is longer than a ring writes over what the draft hasn't read yet.
"""

from typing import Any

from harness.toggle import schedule
from harness.toggle.lagging_draft import LaggingDraft
from harness.toggle.plain_input import PlainDraftInput
from harness.toggle.plain_target import Decoded, attributes

WORKER = "v2"
STRATEGY = "plain"


class NeverFull(LaggingDraft):
    """Doesn't mind how much is kept."""

    def follow(self, decoded: Decoded) -> PlainDraftInput:
        """Keep what a plain step made, and no more."""
        with attributes(self, _extend=lambda *_: None):
            return super().follow(decoded)


def worker(toggled: type) -> type:
    """The toggled class, with such a draft."""

    class Fault(toggled):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            with attributes(schedule, LaggingDraft=NeverFull):
                super().__init__(*args, **kwargs)

    return Fault
