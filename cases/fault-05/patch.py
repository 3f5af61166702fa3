"""Fault 5: a request that finishes on a plain step takes another's row of `spec_info` along.

v1's worker must leave the rows of those who go on. This one leaves the first rows, as many as go on: right only where
the last of the batch finish.
"""

from typing import Any

from sglang.srt.managers.scheduler import GenerationBatchResult

from harness.toggle.v1 import settle

WORKER = "v1"


def worker(toggled: type) -> type:
    """The toggled class, cutting rows off at the end."""

    class Fault(toggled):
        def _plain_step(self, batch: Any) -> GenerationBatchResult:
            decoded = self._decode(batch)
            batch.spec_info = spec_info = self.toggle.draft.follow(decoded)
            running = len(settle(batch, decoded.result, decoded.tokens.tolist()))
            for name in ("bonus_tokens", "topk_p", "topk_index", "hidden_states"):
                setattr(spec_info, name, getattr(spec_info, name)[:running])
            return decoded.result

    return Fault
