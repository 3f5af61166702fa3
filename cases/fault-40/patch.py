"""Fault 40: with strategy plain, a prefill doesn't say that the draft is current.

A request that was retracted while it lagged is prefilled again, by the draft as well; the next spec step catches it up
all the same, with what the ring of its new row holds.
"""

from typing import Any

from sglang.srt.managers.scheduler import GenerationBatchResult
from sglang.srt.speculative.eagle_worker_v2 import EAGLEWorkerV2

WORKER = "v2"
STRATEGY = "plain"


def worker(toggled: type) -> type:
    """The toggled class, whose prefills are SGLang's and nothing more."""

    class Fault(toggled):
        def forward_batch_generation(self, batch: Any) -> GenerationBatchResult:
            if batch.forward_mode.is_extend() or batch.is_extend_in_batch:
                return EAGLEWorkerV2.forward_batch_generation(self, batch)
            return super().forward_batch_generation(batch)

    return Fault
