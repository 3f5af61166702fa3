"""`bench threshold`: up to how many running requests speculation pays, from the rounds of `bench throughput`."""

import math
import random
import statistics
from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import BaseModel, computed_field

from harness.bench.contest import ALWAYS
from harness.bench.throughput import Throughput
from harness.errors import UsageError

RESAMPLES, SEED = 1000, 1
SURE_PERCENT = 90
"""Of the resamples, in the middle, lie from the threshold's `low` to its `high`."""


class Threshold(BaseModel):
    """The estimate, in running requests; 0 where speculation never pays."""

    threshold: int
    low: int
    high: int
    rounds: int
    """Fewest at any concurrency; with one there is no uncertainty to be had."""
    largest: int
    """Concurrency that was measured."""
    against: str
    """The plain engine: in the loop that the toggle's plain steps run in."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def verdict(self) -> Literal["never", "crosses", "always"]:
        """Whether speculation pays nowhere, up to the threshold, or wherever it was measured."""
        if self.threshold == 0:
            return "never"
        return "always" if self.threshold >= self.largest else "crosses"


def estimate(measured: Throughput) -> Threshold:
    """The best threshold; raises UsageError unless always-spec and plain were both measured at 2 concurrencies."""
    plain = measured.contest.plain_in_its_loop
    gains = {
        concurrency: [math.log(ratio) for ratio in measured.ratios(ALWAYS, plain, concurrency) if ratio > 0]
        for concurrency in measured.concurrencies
    }
    gains = {concurrency: rounds for concurrency, rounds in gains.items() if rounds}
    if len(gains) < 2:
        raise UsageError(f"{ALWAYS} and {plain} must both have been measured at 2 concurrencies at least")
    likely = resampled(gains, random.Random(SEED))
    beside = (100 - SURE_PERCENT) / 2 / 100
    return Threshold(
        threshold=best({concurrency: statistics.median(rounds) for concurrency, rounds in gains.items()}),
        low=likely[round(beside * (len(likely) - 1))],
        high=likely[round((1 - beside) * (len(likely) - 1))],
        rounds=min(len(rounds) for rounds in gains.values()),
        largest=max(gains),
        against=plain,
    )


def best(gain: Mapping[int, float]) -> int:
    """The threshold with the least loss, all batch sizes being as likely on a logarithmic scale.

    `gain` has the logarithm of always-spec's rate over plain's by concurrency; in between it is taken as straight over
    the logarithm of the concurrency. Curves that cross once, at c, give c rounded down; those that touch more often,
    because they are noisy, the threshold with which least is lost on both sides.
    """
    sizes = sorted(gain)
    threshold, total, highest = 0, 0.0, 0.0
    for size in range(1, sizes[-1] + 1):
        total += _between(sizes, gain, size) * math.log((size + 0.5) / (size - 0.5))
        if total > highest:
            threshold, highest = size, total
    return threshold


def _between(sizes: Sequence[int], gain: Mapping[int, float], size: int) -> float:
    above = next(place for place, known in enumerate(sizes) if known >= size)
    right = sizes[above]
    left = sizes[max(above - 1, 0)]
    if right == size or left == right:  # below the smallest that was measured it is taken to be the same
        return gain[right]
    share = math.log(size / left) / math.log(right / left)
    return gain[left] + share * (gain[right] - gain[left])


def resampled(gains: Mapping[int, Sequence[float]], rng: random.Random) -> list[int]:
    """Thresholds that other rounds might have given, in order: those there are, drawn with replacement (bootstrap)."""
    return sorted(
        best({size: statistics.median(rng.choices(rounds, k=len(rounds))) for size, rounds in gains.items()})
        for _ in range(RESAMPLES)
    )
