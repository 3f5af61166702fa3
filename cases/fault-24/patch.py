"""Fault 24: the worker filters the batch itself when requests finish on a plain step.

That filters `spec_info` along, as it should be; but the scheduler, which releases those of `batch.reqs` that have
finished, no longer finds them there.
"""

from typing import Any

from sglang.srt.managers.scheduler import GenerationBatchResult

from harness.toggle.v1 import settle

WORKER = "v1"


def worker(toggled: type) -> type:
    """The toggled class, taking finished requests out of the batch."""

    class Fault(toggled):
        def _plain_step(self, batch: Any) -> GenerationBatchResult:
            decoded = self._decode(batch)
            batch.spec_info = self.toggle.draft.follow(decoded)
            batch.filter_batch(keep_indices=settle(batch, decoded.result, decoded.tokens.tolist()))
            return decoded.result

    return Fault
