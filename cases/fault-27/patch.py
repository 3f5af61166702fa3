"""Fault 27: a plain step says that it accepted nothing.

`accept_lens` counts the bonus token, other than `num_correct_drafts`: with 0 the sampled token is thrown away.
"""

from typing import Any

import torch
from sglang.srt.managers.scheduler import GenerationBatchResult

WORKER = "v2"


def worker(toggled: type) -> type:
    """The toggled class, with accepted lengths of 0."""

    class Fault(toggled):
        def _plain_step(self, batch: Any) -> GenerationBatchResult:
            result: GenerationBatchResult = super()._plain_step(batch)
            result.accept_lens = torch.zeros_like(result.accept_lens)
            return result

    return Fault
