"""Fault 41: plain steps keep no log probabilities.

v1's post-processing leaves them to the worker, whose spec steps record them.
"""

from typing import Any

from sglang.srt.managers.scheduler import GenerationBatchResult

WORKER = "v1"


def worker(toggled: type) -> type:
    """The toggled class, with plain steps that nobody asks for logprobs."""

    class Fault(toggled):
        def _plain_step(self, batch: Any) -> GenerationBatchResult:
            asked, batch.return_logprob = batch.return_logprob, False
            result: GenerationBatchResult = super()._plain_step(batch)
            batch.return_logprob = asked
            return result

    return Fault
