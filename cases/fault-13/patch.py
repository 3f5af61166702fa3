"""Fault 13: a plain result comes without `verify_done`.

The scheduler waits for that event before it reads the lengths of a step in flight (`maybe_wait_verify_done`); without
it, it reads them before the device has written them.
"""

from typing import Any

import torch
from sglang.srt.managers.scheduler import GenerationBatchResult

WORKER = "v2"


class LateLengths:
    """A device that is behind: lengths are there once waited for or, in stream order, at the next forward.

    The injected delay, not the fault: the fixed toggle passes with it.
    """

    def __init__(self, lengths: torch.Tensor) -> None:
        self._lengths, self.seen = lengths, torch.zeros_like(lengths)

    def synchronize(self) -> None:
        """Wait."""
        self.seen.copy_(self._lengths)


def worker(toggled: type) -> type:
    """The toggled class on a device that is behind, not saying when the lengths are known."""

    class Fault(toggled):
        _late: LateLengths | None = None

        def forward_batch_generation(self, model_worker_batch: Any) -> GenerationBatchResult:
            if self._late is not None:
                self._late.synchronize()
            result: GenerationBatchResult = super().forward_batch_generation(model_worker_batch)
            draft_input = result.next_draft_input
            self._late = draft_input.verify_done = LateLengths(draft_input.new_seq_lens)
            draft_input.new_seq_lens = self._late.seen
            if model_worker_batch.forward_mode.is_decode():  # a spec step has made it a verify
                draft_input.verify_done = None
            return result

    return Fault
