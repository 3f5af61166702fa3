"""What is kept of measurements: JSON, CSV, comparisons and the plot."""

import csv
from io import StringIO

import pytest

from harness.bench.contest import ALWAYS, PLAIN, PLAIN_NO_OVERLAP, requests_at, room_for
from harness.bench.throughput import Record, Throughput
from harness.commands.bench_throughput import rows
from harness.configuration import EngineConfig, Worker
from harness.errors import UsageError
from harness.report.throughput import crossing_points, picture
from harness.serving.line import Line, Reply
from tests.unit.bench.curves import contest, crossing_at, measured, record


def test_json_comes_back() -> None:
    results = measured(crossing_at(10), noise=(0.9, 1.0))
    assert Throughput.from_json(results.model_dump_json()) == results


def test_csv_has_every_record() -> None:
    results = measured(crossing_at(10), noise=(0.9, 1.0))
    read = [
        Record.model_validate({**row, "tokens_per_step": row["tokens_per_step"] or None})
        for row in csv.DictReader(StringIO(results.to_csv()))
    ]
    assert read == results.records


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not the JSON of bench throughput: Invalid JSON"),
        ("{}", "not the JSON of bench throughput: contest: Field required"),
        (Throughput(contest=contest(), version=9).model_dump_json(), "version 9 isn't 1"),
    ],
)
def test_what_isnt_that_json(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Throughput.from_json(text)


def test_what_is_kept_of_a_line() -> None:
    replies = [Reply(latency_s=float(i), tokens=10, decode_steps=3, problem=None) for i in range(1, 10)]
    kept = Record.of("warm", 2, Line(4, [*replies, Reply(1.0, 0, None, "1 tokens, must be 10")], wall_s=9.0))
    assert (kept.requests, kept.ok, kept.tokens_per_s) == (10, 9, 10.0)
    assert (kept.latency_p50_s, kept.latency_p99_s, kept.tokens_per_step) == (5.0, 9.0, 3.0)


def test_a_toggle_is_compared_with_the_better_of_its_loop() -> None:
    results = measured(
        crossing_at(10),
        noise=(0.9, 1.0),
    )
    compared = {(size, name): (other, ratios) for size, name, other, ratios in results.comparisons()}
    assert compared[4, "warm"] == (ALWAYS, [1.0, 1.0])
    assert compared[64, "plain-strategy"] == (PLAIN, [1.0, 1.0])


def test_v1_is_compared_with_both_plain_loops() -> None:
    results = Throughput(contest=contest(Worker.V1))
    rates = {PLAIN: 110.0, PLAIN_NO_OVERLAP: 100.0, ALWAYS: 80.0, "warm": 95.0, "plain-strategy": 99.0}
    for name, rate in rates.items():
        results.records.append(record(name, 64, 1, rate))
    compared = [(name, other, round(ratio, 3)) for _, name, other, (ratio,) in results.comparisons()]
    assert compared == [
        ("warm", PLAIN, 0.864),
        ("warm", PLAIN_NO_OVERLAP, 0.95),
        ("plain-strategy", PLAIN, 0.9),
        ("plain-strategy", PLAIN_NO_OVERLAP, 0.99),
    ]
    judged = {name: (target, met) for name, _, target, met in rows(results)}
    assert judged["warm / plain-no-overlap, C=64"] == (">= 0.9", True)
    assert judged["plain-strategy / plain-no-overlap, C=64"] == (">= 0.97", True)
    assert judged["warm / plain, C=64"] == ("", None)


def test_all_right() -> None:
    results = Throughput(contest=contest(), records=[record(PLAIN, 1, 1, 10.0)])
    assert results.all_right
    assert not results.model_copy(update={"failures": {"warm": "it ended"}}).all_right
    assert not Throughput(contest=contest(), records=[record(PLAIN, 1, 1, 10.0, ok=3)]).all_right


@pytest.mark.parametrize(("concurrency", "requests"), [(1, 4), (2, 8), (8, 32), (10, 30), (32, 64), (250, 500)])
def test_requests_come_in_whole_waves(concurrency: int, requests: int) -> None:
    assert requests_at(concurrency) == requests


def test_room_for_all_that_run() -> None:
    roomy = room_for(EngineConfig(), 64, [(250, 128), (17, 700)])
    assert roomy.graphs == (1, 2, 4, 8, 16, 32, 64, 128, 250)
    assert roomy.max_running_requests == 250
    assert roomy.context_length >= 64 + 700
    assert roomy.kv_tokens >= 250 * (64 + 128)
    assert EngineConfig.model_validate(roomy.model_dump()) == roomy


def test_the_plot_is_always_the_same() -> None:
    results = measured(crossing_at(10), noise=(0.9, 1.0))
    drawn = picture(results)
    assert drawn == picture(results)
    text = drawn.decode()
    assert "envelope of plain and always-spec" in text
    assert "plain-strategy" in text
    assert picture(results, "png").startswith(b"\x89PNG")


def test_one_engine_can_be_drawn_alone() -> None:
    results = Throughput(contest=contest(), records=[record(PLAIN, 1, 1, 10.0)])
    assert b"<svg" in picture(results)


def test_where_curves_cross() -> None:
    one, other = [(1.0, 10.0), (4.0, 40.0)], [(1.0, 20.0), (4.0, 20.0)]
    ((size, rate),) = crossing_points(one, other)
    assert (round(size, 6), round(rate, 6)) == (2.0, 20.0)
    assert crossing_points(one, one) == []
