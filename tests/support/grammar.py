"""A grammar for tests: a number of tokens, none of them the end of sequence, and then the end of sequence only."""

import torch
from sglang.srt.constrained.base_grammar_backend import BaseGrammarObject

from harness.prompts import EOS_TOKEN

BITS = 32
"""Tokens of one word of a mask, a set bit allowing its token, as in xgrammar's masks; EOS_TOKEN is in the first."""
EOS_BIT = 1 << EOS_TOKEN


class EndsAfter(BaseGrammarObject):
    """Keeps only how many tokens it took; raises ValueError for one that isn't allowed, as SGLang's do."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count, self.taken = count, 0

    def accept_token(self, token: int) -> None:
        if (token == EOS_TOKEN) != (self.taken == self.count):
            raise ValueError(f"token {token} isn't allowed as number {self.taken}")
        self.taken += 1

    def rollback(self, k: int) -> None:
        self.taken -= k

    def is_terminated(self) -> bool:
        return self.taken > self.count

    def allocate_vocab_mask(self, vocab_size: int, batch_size: int, device: str) -> torch.Tensor:
        return torch.full((batch_size, -(-vocab_size // BITS)), -1, dtype=torch.int32, device=device)

    def fill_vocab_mask(self, vocab_mask: torch.Tensor, idx: int) -> None:
        ends = self.taken == self.count
        vocab_mask[idx] = 0 if ends else -1
        vocab_mask[idx, 0] = EOS_BIT if ends else ~EOS_BIT

    @staticmethod
    def move_vocab_mask(vocab_mask: torch.Tensor, device: str) -> torch.Tensor:
        return vocab_mask.to(device)

    @staticmethod
    def apply_vocab_mask(logits: torch.Tensor, vocab_mask: torch.Tensor) -> None:
        bits = torch.arange(BITS, device=logits.device)
        allowed = ((vocab_mask.unsqueeze(-1) >> bits) & 1).flatten(1)[:, : logits.shape[-1]].bool()
        logits.masked_fill_(~allowed, float("-inf"))
