"""Fault 31: the draft replays a graph wherever there are graphs.

A batch larger than the largest captured size is decoded eagerly, and then no graph of the target's has been replayed
for the draft to follow.
"""

from typing import Any

from sglang.srt.speculative.eagle_info import EagleDraftInput

from harness.toggle import schedule
from harness.toggle.plain_draft import PlainDraft
from harness.toggle.plain_target import Decoded, attributes

WORKER = "v1"


class AlwaysReplayed(PlainDraft):
    """Asks whether there are graphs, not whether the target has just replayed one."""

    def follow(self, decoded: Decoded) -> EagleDraftInput:
        """Write the draft's KV and propose the next tokens."""
        decoded.result.can_run_cuda_graph = self.graphs is not None
        return super().follow(decoded)


def worker(toggled: type) -> type:
    """The toggled class, without asking how the target ran."""

    class Fault(toggled):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            with attributes(schedule, PlainDraft=AlwaysReplayed):
                super().__init__(*args, **kwargs)

    return Fault
