"""Fault 4: the graphs of plain steps are captured on the attention backend of spec steps.

`init_cuda_graph_state` makes new buffers with each set of graphs. The verify graphs, captured first, go on reading the
old ones, which nothing fills any more.
"""

from typing import Any

from sglang.srt.speculative.spec_info import SpeculativeAlgorithm

from harness.toggle import schedule
from harness.toggle.plain_target import PlainGraphRunner, PlainTarget, attributes

WORKER = "v1"


class SharedBackend(PlainTarget):
    """Captures on the backend that is there."""

    def __init__(self, worker: Any, sizes: list[int]) -> None:
        super().__init__(worker, [])
        if sizes:
            with attributes(self._runner, spec_algorithm=SpeculativeAlgorithm.NONE):
                self.graphs = PlainGraphRunner(self._runner, attn_backend=self.backend)


def worker(toggled: type) -> type:
    """The toggled class, with one attention backend for both sets of graphs."""

    class Fault(toggled):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            with attributes(schedule, PlainTarget=SharedBackend):
                super().__init__(*args, **kwargs)

    return Fault
