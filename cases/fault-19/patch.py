"""Fault 19: radix nodes are locked on plain steps, and unlocked by the next spec step alone.

The locks are to keep a prefix while speculation is off. Whoever finishes on a plain step never gets to a spec step.
"""

from typing import Any

from sglang.srt.managers.scheduler import GenerationBatchResult
from sglang.srt.speculative.eagle_info import EagleVerifyInput

WORKER = "v1"


def worker(toggled: type) -> type:
    """The toggled class, locking prefixes while speculation is off."""

    class Fault(toggled):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self._locked: dict[Any, Any] = {}

        def _plain_step(self, batch: Any) -> GenerationBatchResult:
            for request in batch.reqs:
                if request not in self._locked:
                    self._locked[request] = request.last_node
                    batch.tree_cache.inc_lock_ref(request.last_node)
            return super()._plain_step(batch)

        def draft(self, batch: Any) -> EagleVerifyInput:
            for request in batch.reqs:
                if request in self._locked:
                    batch.tree_cache.dec_lock_ref(self._locked.pop(request))
            return super().draft(batch)

    return Fault
