"""What plain steps leave for a draft that does nothing meanwhile: tokens, and the target's hidden states."""

from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True)
class Kept:
    """A ring for each row of the request table, made once, so that a plain step allocates nothing.

    Draft entry p is of token p + 1 and the target's hidden state at p. Both are at place p modulo `each` of their
    request's ring. A ring a row rather than a place a KV slot, because slots are many and rows are few: for
    Llama-3.1-8B in 16 bits a token's hidden states take 24 KiB, a fifth of its KV.
    """

    tokens: torch.Tensor
    """(rows * each,) int64: token p + 1."""
    hidden_states: torch.Tensor
    """(rows * each, width): what the target returns with `CaptureHiddenMode.FULL`; of EAGLE-3 three layers' states."""
    each: int
    """Positions kept of a request."""

    @classmethod
    def empty(cls, rows: int, each: int, width: int, dtype: torch.dtype, device: torch.device) -> "Kept":
        """Rings for `rows` rows; the request table (`ReqToTokenPool.req_to_token`) has one more than may run."""
        return cls(
            tokens=torch.zeros(rows * each, dtype=torch.int64, device=device),
            hidden_states=torch.zeros(rows * each, width, dtype=dtype, device=device),
            each=each,
        )

    def keep(
        self, rows: torch.Tensor, positions: torch.Tensor, tokens: torch.Tensor, hidden_states: torch.Tensor
    ) -> None:
        """Keep what one plain step made: `rows`, `positions` and `tokens` (batch size,), of one request each."""
        places = self._places(rows, positions)
        self.tokens.index_copy_(0, places, tokens.to(torch.int64))
        self.hidden_states.index_copy_(0, places, hidden_states)

    def take(self, rows: torch.Tensor, positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Tokens p + 1 and hidden states at p, for positions p (tokens,) of requests in `rows` (tokens,)."""
        places = self._places(rows, positions)
        return self.tokens[places], self.hidden_states[places]

    def _places(self, rows: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        return rows * self.each + positions % self.each
