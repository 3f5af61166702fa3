"""Fault 30: the log probabilities of a plain step stay one number a request.

V2's post-processing expects a row of them for each request, one for each token that was accepted.
"""

from typing import Any

from sglang.srt.managers.scheduler import GenerationBatchResult

WORKER = "v2"


def worker(toggled: type) -> type:
    """The toggled class, with logprobs as the sampler returns them."""

    class Fault(toggled):
        def _plain_step(self, batch: Any) -> GenerationBatchResult:
            result: GenerationBatchResult = super()._plain_step(batch)
            if batch.return_logprob:
                output = result.logits_output
                output.next_token_logprobs = output.next_token_logprobs[:, 0]
            return result

    return Fault
