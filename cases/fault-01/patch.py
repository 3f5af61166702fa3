"""Fault 1: a plain step replays the graphs of spec steps.

The attention backend is swapped for the decode forward, the graph runner isn't. `CudaGraphRunner.can_run` asks for
neither forward mode nor token count, so that the verify graphs take the batch.
"""

from typing import Any

WORKER = "v1"


def worker(toggled: type) -> type:
    """The toggled class, decoding on the verify graphs."""

    class Fault(toggled):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.toggle.target.graphs = self.target_worker.model_runner.graph_runner

    return Fault
