"""Fault 38: with strategy plain the draft catches up with hidden states that are one position behind.

The draft's entry at p is of token p + 1 and the target's hidden state at p, which sampled that token.
"""

from typing import Any

import torch

from harness.toggle.kept import Kept

WORKER = "v2"
STRATEGY = "plain"


class HiddenBehind(Kept):
    """Takes the hidden state of the position before."""

    def take(self, rows: torch.Tensor, positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Tokens p + 1 and hidden states at p - 1."""
        tokens, _ = super().take(rows, positions)
        _, hidden_states = super().take(rows, positions - 1)
        return tokens, hidden_states


def worker(toggled: type) -> type:
    """The toggled class, with such a memory."""

    class Fault(toggled):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            kept = self.toggle.draft.kept
            self.toggle.draft.kept = HiddenBehind(kept.tokens, kept.hidden_states, kept.each)

    return Fault
