"""Fault 37: with strategy plain, a request that ends is no longer known to lag.

It will never be drafted for again, so why catch up; but its KV goes on living in the radix cache.
"""

from typing import Any

from sglang.srt.managers.scheduler import GenerationBatchResult

from harness.toggle.drafted import caught_up

WORKER = "v1"
STRATEGY = "plain"


def worker(toggled: type) -> type:
    """The toggled class, forgetting how far the draft of a finished request came."""

    class Fault(toggled):
        def _plain_step(self, batch: Any) -> GenerationBatchResult:
            result = super()._plain_step(batch)
            caught_up([request for request in batch.reqs if request.finished()])
            return result

    return Fault
