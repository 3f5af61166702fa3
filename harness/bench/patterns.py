"""How concurrency goes up and down over a workload, and requests of different lengths for it; the same for a seed."""

import math
import random
from collections.abc import Callable, Mapping

BURSTS = 4
BURST_SHARE = 0.5
"""Of each burst's requests, those that are asked for while it is on."""
LENGTH_SPREAD = 0.5
"""Of the mean, up and down: answers that all end at once would make waves of their own."""


def ramp(progress: float) -> float:
    """Up, then down."""
    return 1 - abs(2 * progress - 1)


def bursts(progress: float) -> float:
    """Quiet, then a burst, a few times over."""
    return float(progress * BURSTS % 1 >= 1 - BURST_SHARE)


def day(progress: float) -> float:
    """A night and a day: a cosine's one wave."""
    return (1 - math.cos(2 * math.pi * progress)) / 2


PATTERNS: Mapping[str, Callable[[float], float]] = {"ramp": ramp, "bursts": bursts, "day": day}
"""From 0 to 1 over a workload's progress, from 0 to 1."""


def in_flight(pattern: str, requests: int, low: int, high: int) -> tuple[int, ...]:
    """Requests wanted in flight while `i` of them have ended: from `low` to `high`, as the pattern goes.

    Progress is counted in requests, not in time: so that every engine gets the same work at each concurrency, and one
    that is slow has to do all of it. Between is taken on a logarithmic scale, on which small batches count as well.
    """
    shape = PATTERNS[pattern]
    return tuple(round(low * (high / low) ** shape(number / requests)) for number in range(requests))


def lengths(requests: int, mean: int, seed: int) -> tuple[int, ...]:
    """Tokens of each answer."""
    rng = random.Random(seed)
    return tuple(round(mean * rng.uniform(1 - LENGTH_SPREAD, 1 + LENGTH_SPREAD)) for _ in range(requests))


def longest(mean: int) -> int:
    """Tokens of the longest answer that `lengths` can give."""
    return round(mean * (1 + LENGTH_SPREAD))
