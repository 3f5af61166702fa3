"""Fault 36: with strategy plain the draft isn't caught up when speculation comes back.

The next spec step drafts from what a plain step leaves, which is nothing, on KV with a hole where plain steps were.
"""

from typing import Any

WORKER = "v1"
STRATEGY = "plain"


def worker(toggled: type) -> type:
    """The toggled class, which never catches up before a spec step."""

    class Fault(toggled):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.toggle.draft.catch_up = lambda batch: None

    return Fault
