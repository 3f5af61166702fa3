"""Fault 17: nobody asks on a plain step whether a request has finished.

v1's post-processing leaves `Req.check_finished` to the worker, and this one appends the token and no more: a request
runs on until a verify asks.
"""

from typing import Any

from sglang.srt.managers.scheduler import GenerationBatchResult

WORKER = "v1"


def worker(toggled: type) -> type:
    """The toggled class, appending tokens only."""

    class Fault(toggled):
        def _plain_step(self, batch: Any) -> GenerationBatchResult:
            decoded = self._decode(batch)
            batch.spec_info = self.toggle.draft.follow(decoded)
            for request, token in zip(batch.reqs, decoded.tokens.tolist(), strict=True):
                request.output_ids.append(token)
                request.spec_verify_ct += 1
            decoded.result.num_correct_drafts_per_req_cpu = [0] * len(batch.reqs)
            return decoded.result

    return Fault
