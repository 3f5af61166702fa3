"""A toggle whose first plain step reads beyond its tensor: a device-side assert on a GPU, seen at the next wait."""

from typing import Any

import torch

WORKER = "v1"


def worker(toggled: type) -> type:
    """The toggled class, reading beyond."""

    class OutOfRange(toggled):
        def _plain_step(self, batch: Any) -> Any:
            table = torch.zeros(4, device=batch.seq_lens.device)
            beyond = table[batch.seq_lens + 1_000_000]
            result = super()._plain_step(batch)
            beyond.sum().item()
            return result

    return OutOfRange
