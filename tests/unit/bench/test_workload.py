"""Patterns that are the same each time, switches whose cost is known, and what is made of a crossing workload."""

import pytest

from harness.bench.patterns import PATTERNS, in_flight, lengths, longest
from harness.bench.switches import costs
from harness.bench.workload import Crossing, Workload
from harness.commands.bench_workload import line, rows
from harness.serving.line import Line, Reply
from tests.unit.bench.curves import contest


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_stays_in_its_bounds_and_crosses(pattern: str) -> None:
    wanted = in_flight(pattern, 256, 2, 64)
    assert len(wanted) == 256
    assert min(wanted) == 2
    assert max(wanted) in (63, 64)
    assert wanted == in_flight(pattern, 256, 2, 64)


def test_a_ramp_goes_up_and_down() -> None:
    wanted = in_flight("ramp", 8, 1, 16)
    assert wanted == (1, 2, 4, 8, 16, 8, 4, 2)


def test_bursts_are_sudden() -> None:
    assert set(in_flight("bursts", 64, 2, 40)) == {2, 40}


def test_lengths_are_the_seeds() -> None:
    made = lengths(200, 100, seed=3)
    assert made == lengths(200, 100, seed=3) != lengths(200, 100, seed=4)
    assert 50 <= min(made) < max(made) <= longest(100) == 150


def times(durations_ms: list[float]) -> list[float]:
    return [sum(durations_ms[:place]) / 1e3 for place in range(len(durations_ms) + 1)]


@pytest.mark.parametrize("lag", [0, 1])
def test_what_a_switch_costs(lag: int) -> None:
    """Spec steps of 10 ms, plain ones of 4; a joining prefill of 30; 3 more on the way off, 5 on the way on."""
    steps = [50.0, *[10.0] * 6, 30.0, 7.0, *[4.0] * 6, 15.0, *[10.0] * 5]
    modes: list[bool | None] = [*[True] * 8, *[False] * 7, *[True] * (6 + lag)]
    found = costs(times([1.0] * lag + steps), modes, joined=[7], lag=lag)
    assert found.off_ms == [pytest.approx(33)]
    assert found.on_ms == [pytest.approx(5)]
    assert (found.spec_step_ms, found.plain_step_ms) == (pytest.approx(10), pytest.approx(4))


def test_a_prefill_whose_launch_takes_longer_than_the_step_before() -> None:
    """9 of its 12 ms are spent in the iteration that launches it, which has the GPU's 4 ms of the step before in it."""
    durations = [1.0, 50.0, *[4.0] * 6, 9.0, 7.0, *[4.0] * 6]
    found = costs(times(durations), [None] * len(durations), joined=[8], lag=1)
    assert found.off_ms == [pytest.approx(9 + 7 + 4 - 2 * 4)]


def test_what_joining_costs_where_nothing_switches() -> None:
    durations = [50.0, *[4.0] * 6, 30.0, 6.0, *[4.0] * 6]
    found = costs(times(durations), [None] * len(durations), joined=[7], lag=0)
    assert found.off_ms == [pytest.approx(32)]
    assert found.on_ms == []
    assert (found.spec_step_ms, found.plain_step_ms) == (None, pytest.approx(4))


def run(engine: str, total_s: float) -> Crossing:
    reply = Reply(latency_s=1.0, tokens=10, decode_steps=None, problem=None)
    return Crossing.of(engine, "ramp", 1, Line(64, [reply], total_s))


def test_a_toggle_that_beats_both() -> None:
    results = Workload(contest=contest(), low=2, high=64)
    results.records = [run("plain", 10.0), run("always-spec", 12.0), run("warm", 8.0), run("plain-strategy", 10.5)]
    judged = {name: (measured, met) for name, measured, _, met in rows(results)}
    assert judged["ramp, total time, plain / warm"] == ("1.250 (1.250 to 1.250, 1 rounds)", True)
    assert judged["ramp, total time, plain / plain-strategy"][1] is False
    assert Workload.model_validate_json(results.model_dump_json()) == results
    assert line(results.records[0]).endswith("latency p50/p90/p99:   1.00/  1.00/  1.00s | ok: 1/1")


def test_without_both_untoggled_nothing_is_judged() -> None:
    results = Workload(contest=contest(), low=2, high=64, records=[run("plain", 10.0), run("warm", 8.0)])
    assert results.gains("warm", "ramp") is None
