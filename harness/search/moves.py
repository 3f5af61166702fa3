"""What a program is generated from: moves that each mean something whatever came before them.

A strategy draws moves independently of each other, so that any of them can be deleted or made simpler; `steering` turns
them into operations with a model of the batch at hand. Of every number the least is the simplest.
"""

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What a move does, the simplest first."""

    WAIT = "wait"
    SUBMIT = "submit"
    """As many requests as `amount` says."""
    CROSS = "cross"
    """To the other side of the threshold: over it by submitting just enough, below it by aborting."""
    CROSS_WAITING = "cross, waiting"
    """The same, but down by letting requests end."""
    CROSS_WIDELY = "cross widely"
    """The same, but over the largest captured size by one; down to a single request."""
    CROSS_FULLY = "cross fully"
    """The same, but up to more requests than may run; down to none."""
    ABORT = "abort"
    RETRACT = "retract"
    RETRACT_AT_END = "retract at an end"
    """Retract just after the step in which a request ends."""
    FLUSH = "flush"
    DRAIN = "drain"
    CLOSE = "close"
    """Cross what the program hasn't yet: up if it never was over the threshold, down if that is where it is."""


CROSSING = (Kind.CROSS, Kind.CROSS_WAITING, Kind.CROSS_WIDELY, Kind.CROSS_FULLY)


class End(StrEnum):
    """What a request is made to end by."""

    LENGTH = "length"
    STOP_TOKEN = "stop token"
    END_OF_SEQUENCE = "end of sequence"
    CONTEXT = "context limit"


class Chunks(StrEnum):
    """How a prompt's length stands to the chunks in which it is prefilled."""

    ANY = "any"
    EXACT = "exact"
    """Whole chunks."""
    DRAFT = "draft"
    """Whole chunks and one of as many tokens as a spec step verifies."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What the requests of a submission look like; the defaults are `program.DEFAULT_PROMPT`'s."""

    period: int = 7
    seed: int = 0
    extra: int = 0
    """Tokens by which the prompt is longer than it need be."""
    chunks: Chunks = Chunks.ANY
    new_tokens: int = 8
    end: End = End.LENGTH
    end_at: int = 0
    """For a stop token or the end of sequence: output tokens before it, of the first request."""
    temperature: float = 0.0
    frequency_penalty: float = 0.0
    logprobs: bool = False


class Ending(StrEnum):
    """How a program ends, the simplest first."""

    NOTHING = "nothing"
    """Wherever its last move leaves it."""
    DRAIN = "drain"
    FLUSH = "drain and flush"


@dataclass(frozen=True, slots=True)
class Move:
    """One event and the steps after it."""

    kind: Kind = Kind.WAIT
    amount: int = 0
    """Of requests, capped by what the kind needs; or which request."""
    pause: int = 0
    """Of steps, capped by what the kind needs and a few more."""
    shape: Shape = Shape()
