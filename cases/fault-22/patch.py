"""Fault 22: the draft reads the sampled tokens at their own positions.

The draft's entry at p is of token p + 1: it reads a token at the position before, the one that the target has just
decoded at.
"""

from copy import copy
from dataclasses import replace
from typing import Any

import torch

from harness.toggle import schedule
from harness.toggle.plain_draft import PlainDraft, Proposal
from harness.toggle.plain_target import Decoded, attributes

WORKER = "v1"


class PositionAhead(PlainDraft):
    """Follows at the positions of the tokens that it is given."""

    def _eager(self, tokens: torch.Tensor, decoded: Decoded) -> Proposal:
        batch = copy(decoded.batch)
        batch.positions = decoded.batch.positions + 1
        return super()._eager(tokens, replace(decoded, batch=batch))


def worker(toggled: type) -> type:
    """The toggled class, with the draft a position ahead."""

    class Fault(toggled):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            with attributes(schedule, PlainDraft=PositionAhead):
                super().__init__(*args, **kwargs)

    return Fault
