"""Fault 25: the target keeps the attention backend and the graphs of plain steps.

They are set for the decode forward, and nobody puts those of spec steps back.
"""

from typing import Any

from harness.toggle import schedule
from harness.toggle.plain_target import Decoded, PlainTarget, attributes

WORKER = "v1"


class ForGood(PlainTarget):
    """Switches to its own backend and graphs."""

    def decode(self, batch: Any) -> Decoded:
        """Forward and sample."""
        self._runner.attn_backend, self._runner.graph_runner = self.backend, self.graphs
        return super().decode(batch)


def worker(toggled: type) -> type:
    """The toggled class, switching the target for good."""

    class Fault(toggled):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            with attributes(schedule, PlainTarget=ForGood):
                super().__init__(*args, **kwargs)

    return Fault
