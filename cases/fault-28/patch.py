"""Fault 28: each plain step initialises its attention backend's graph state anew.

It is to start from clean metadata. `init_cuda_graph_state` makes new buffers, and the captured graphs go on reading the
old ones.
"""

from typing import Any

from sglang.srt.managers.scheduler import GenerationBatchResult

WORKER = "v1"


def worker(toggled: type) -> type:
    """The toggled class, resetting a backend under its graphs."""

    class Fault(toggled):
        def _plain_step(self, batch: Any) -> GenerationBatchResult:
            target = self.toggle.target
            target.backend.init_cuda_graph_state(target.graphs.max_bs, target.graphs.max_bs)
            return super()._plain_step(batch)

    return Fault
