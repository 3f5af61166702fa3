"""The threshold of made-up curves whose crossing is known."""

import math
import random
from pathlib import Path

import pytest

from harness.bench.threshold import best, estimate, resampled
from harness.bench.throughput import Throughput
from harness.errors import UsageError
from tests.unit.bench.curves import SIZES, contest, crossing_at, measured, plain_rate


@pytest.mark.parametrize("crossing", [2.5, 5.5, 11.3, 24.9, 90.5])
def test_a_known_crossing(crossing: float) -> None:
    found = estimate(measured(crossing_at(crossing)))
    assert (found.threshold, found.verdict) == (int(crossing), "crosses")
    assert (found.low, found.high, found.rounds) == (found.threshold, found.threshold, 1)


def test_speculation_never_pays() -> None:
    found = estimate(measured(lambda size: plain_rate(size) * 0.8))
    assert (found.threshold, found.verdict) == (0, "never")


def test_speculation_always_pays() -> None:
    found = estimate(measured(lambda size: plain_rate(size) * 1.2))
    assert (found.threshold, found.verdict) == (128, "always")


def test_noisy_rounds_make_it_unsure() -> None:
    found = estimate(measured(crossing_at(24.5), noise=(0.94, 0.97, 1.0, 1.03, 1.06)))
    assert found.threshold == 24
    assert found.low < 24 < found.high
    assert found == estimate(measured(crossing_at(24.5), noise=(0.94, 0.97, 1.0, 1.03, 1.06)))


def test_curves_that_touch_twice_lose_least() -> None:
    """A dip at 4 is noise, if speculation wins again by more at 8 and 16."""
    gains = {1: 0.5, 2: 0.3, 4: -0.02, 8: 0.1, 16: 0.05, 32: -0.4}
    assert best(gains) in (16, 17)


def test_resamples_stay_between_the_rounds() -> None:
    gains = {size: [math.log(25 / size) * 0.2, math.log(20 / size) * 0.2] for size in SIZES}
    likely = resampled(gains, random.Random(1))
    assert likely[0] in (19, 20)
    assert likely[-1] in (24, 25)


def test_too_little_was_measured() -> None:
    with pytest.raises(UsageError, match="always-spec and plain must both have been measured at 2 concurrencies"):
        estimate(measured(plain_rate, sizes=(1,)))
    with pytest.raises(UsageError, match="at 2 concurrencies"):
        estimate(Throughput(contest=contest()))


def test_from_the_file_that_was_written(tmp_path: Path) -> None:
    file = tmp_path / "throughput.json"
    file.write_text(measured(crossing_at(5.5)).model_dump_json())
    assert estimate(Throughput.from_json(file.read_text())).threshold == 5
