"""Fault 8: the draft doesn't follow plain steps.

The next spec step gets the new bonus tokens, and all else that it drafts from is left from before: the draft's KV has
holes where plain steps were.
"""

from dataclasses import replace
from typing import Any

from sglang.srt.managers.scheduler import GenerationBatchResult

from harness.toggle.v1 import settle

WORKER = "v1"


def worker(toggled: type) -> type:
    """The toggled class, without a draft forward on plain steps."""

    class Fault(toggled):
        def _plain_step(self, batch: Any) -> GenerationBatchResult:
            decoded = self._decode(batch)
            batch.spec_info = replace(batch.spec_info, bonus_tokens=decoded.tokens)
            running = settle(batch, decoded.result, decoded.tokens.tolist())
            rows = decoded.tokens.new_tensor(running)
            batch.spec_info.filter_batch(rows, has_been_filtered=False)
            return decoded.result

    return Fault
