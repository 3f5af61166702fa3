"""Prompts whose right continuation is known in closed form: shifted repetition.

A prompt repeats `period` distinct ids, each round one id higher: x[n] = (base[n % period] + n // period) % 256. The
model pair in `fixtures/model_pair` is built to continue exactly these sequences, so the right answer to every prompt,
and the right accepted length of every spec step, follow from the prompt alone. Plain repetition wouldn't do: an older
copy of a lost KV entry would give the same answer.
"""

import random
from dataclasses import dataclass
from functools import lru_cache

VOCABULARY_SIZE = 256
"""Number of token ids of the model pair."""

EOS_TOKEN = 1
"""End of sequence in the built-in target's configuration."""

PERIODS = range(4, 129)
"""Periods that the model pair continues without error. The last `period` entries of the KV cache are live: with a
large period that is all of a short context."""

MAXIMUM_CONTEXT = 1024
"""Tokens, prompt and continuation together, up to which the model pair is right."""

HOLE_PERIOD = 5
HOLE_RESIDUE = 3
"""The draft's vocabulary leaves out ids with id % HOLE_PERIOD == HOLE_RESIDUE: it can never propose those."""


def proposable(token: int) -> bool:
    """Whether the draft's vocabulary (d2t) holds this token id."""
    return token % HOLE_PERIOD != HOLE_RESIDUE


@dataclass(frozen=True, slots=True)
class Prompt:
    """The first `length` ids of the shifted repetition (`period`, `seed`); `period` + 2 of them settle what follows."""

    period: int
    seed: int
    length: int

    def __post_init__(self) -> None:
        _require("period", self.period, PERIODS)
        if self.seed < 0:
            raise ValueError(f"seed must not be negative, as {self.seed} is")
        _require(f"length of period {self.period}", self.length, range(self.period + 2, MAXIMUM_CONTEXT + 1))

    def tokens(self) -> tuple[int, ...]:
        """The prompt's ids, `length` of them."""
        return self.sequence(self.length)

    def sequence(self, count: int) -> tuple[int, ...]:
        """The first `count` ids of the whole sequence: the prompt, then its right greedy continuation."""
        base = base_ids(self.period, self.seed)
        return tuple((base[n % self.period] + n // self.period) % VOCABULARY_SIZE for n in range(count))


def _require(name: str, value: int, allowed: range) -> None:
    if value not in allowed:
        raise ValueError(f"{name} must be {allowed.start} to {allowed.stop - 1}, not {value}")


def minimum_gap(period: int) -> int:
    """The least distance on the ring of ids between two ids of one base.

    An id comes back after at least this many rounds, so its last two occurrences are told apart by their distance.
    """
    return max(2, VOCABULARY_SIZE * 3 // 4 // period)


@lru_cache(maxsize=4096)
def base_ids(period: int, seed: int) -> tuple[int, ...]:
    """`period` distinct ids in random order, no two closer than `minimum_gap` on the ring."""
    rng = random.Random(f"{period}/{seed}")
    gap = minimum_gap(period)
    free = VOCABULARY_SIZE - period * gap
    offset = rng.randrange(VOCABULARY_SIZE)
    cuts = sorted(rng.randint(0, free) for _ in range(period))
    ids = [(cut + index * gap + offset) % VOCABULARY_SIZE for index, cut in enumerate(cuts)]
    rng.shuffle(ids)
    return tuple(ids)
