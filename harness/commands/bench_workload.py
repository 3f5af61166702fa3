"""`toggle-harness bench workload`: concurrency that crosses the threshold, and what each switch costs."""

import statistics
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from harness.bench.contest import STRATEGIES
from harness.bench.patterns import PATTERNS, longest
from harness.bench.rounds import Rounds
from harness.bench.switches import long_tokens
from harness.bench.workload import Crossing, Workload, measure
from harness.commands import contests, options
from harness.commands.asked import Asked, asking
from harness.commands.measuring import Row, spread, table_of
from harness.errors import UsageError

OK, NOT_OK = 0, 1


@asking
def command(
    asked: Asked,
    pattern: Annotated[list[str] | None, options.option(f"{', '.join(PATTERNS)}; repeat it for several [all].")] = None,
    low: Annotated[int, typer.Option(min=1, help="Fewest requests in flight.")] = 2,
    high: Annotated[int, typer.Option(min=2, help="Most requests in flight.")] = 128,
    requests: Annotated[int, typer.Option(min=2, help="In each pattern.")] = 512,
    threshold: contests.ThresholdOption = None,
    new_tokens: Annotated[int, typer.Option(min=2, help="Tokens of an answer, on average.")] = 128,
    rounds: contests.RoundsOption = 3,
    minutes: contests.MinutesOption = None,
    output: contests.OutputOption = Path("workload"),
) -> int:
    """Total time and latencies while concurrency follows a pattern, and the milliseconds that a switch costs.

    Writes workload.json as it goes. Exit codes as of bench throughput.
    """
    until_s = time.monotonic() + minutes * 60 if minutes is not None else float("inf")
    resolved = asked.device.resolve()
    patterns = _patterns(pattern)
    if low > high:
        raise UsageError(f"--low {low} is more than --high {high}")
    contest = asked.contest(
        resolved, threshold=threshold, new_tokens=new_tokens, running=high, longest=longest(new_tokens)
    )
    switching = (contest.threshold + 1, long_tokens(contest.config))
    contest = contest.with_room_for((high, longest(new_tokens)), switching)
    results, folder = Workload(contest=contest, low=low, high=high), contests.folder(output)
    console = contests.console(asked.as_json)

    def told(run: Crossing) -> None:
        console.print(line(run), soft_wrap=True)
        _write(results, folder)

    console.print(contest.title, soft_wrap=True)
    try:
        with contests.started(contest, resolved, folder) as running:
            measure(running, results, Rounds(patterns, rounds, until_s), requests, told)
    finally:
        if results.records or results.switches:
            _write(results, folder)
            console.print(table_of("bench workload", rows(results)))
            console.print(f"results: {folder}", soft_wrap=True)
    if asked.as_json:
        sys.stdout.write(results.model_dump_json() + "\n")
    return OK if results.all_right else NOT_OK


def _patterns(given: list[str] | None) -> list[str]:
    for name in given or ():
        if name not in PATTERNS:
            raise UsageError(f"no pattern {name}: there are {', '.join(PATTERNS)}")
    return list(dict.fromkeys(given or PATTERNS))


def _write(results: Workload, folder: Path) -> None:
    contests.write(folder / "workload.json", results.model_dump_json(indent=1) + "\n")


def line(run: Crossing) -> str:
    """One run, as it is printed when it ends."""
    return (
        f"{run.engine:16} {run.pattern:6} | {run.requests} requests | total: {run.total_s:7.2f} s | "
        f"throughput: {run.tokens_per_s:7.1f} tok/s | latency p50/p90/p99: {run.latency_p50_s:6.2f}/"
        f"{run.latency_p90_s:6.2f}/{run.latency_p99_s:6.2f}s | ok: {run.ok}/{run.requests}"
    )


def rows(results: Workload) -> list[Row]:
    """Medians of each engine, whether toggled ones beat both others, and what switches cost."""
    table: list[Row] = []
    for pattern in results.patterns:
        runs = {name: results.of(name, pattern) for name in results.contest.engines}
        table += [(f"{pattern}, {name}", _medians(of), "", None) for name, of in runs.items() if of]
        for name in STRATEGIES:
            if (gained := results.gains(name, pattern)) is not None:
                other, ratios = gained
                met = statistics.median(ratios) > 1
                table.append((f"{pattern}, total time, {other} / {name}", spread(ratios, "rounds"), "> 1", met))
    for name, cost in results.switches.items():
        steps = (("spec step", cost.spec_step_ms), ("plain step", cost.plain_step_ms))
        table += [(f"{what}, {name}", f"{ms:.3f} ms", "", None) for what, ms in steps if ms is not None]
        off = "switching off" if name in STRATEGIES else "a request joins"
        both = ((off, cost.off_ms), ("switching on", cost.on_ms))
        table += [(f"{what}, {name}", _milliseconds(costs), "", None) for what, costs in both if costs]
    return table


def _medians(runs: list[Crossing]) -> str:
    fields = ("total_s", "latency_p50_s", "latency_p99_s")
    total, p50, p99 = (statistics.median(getattr(run, field) for run in runs) for field in fields)
    return f"{total:.2f} s, latency p50/p99 {p50:.2f}/{p99:.2f} s, {len(runs)} rounds"


def _milliseconds(costs: list[float]) -> str:
    return f"{statistics.median(costs):+.3f} ms ({min(costs):+.3f} to {max(costs):+.3f}, {len(costs)} times)"
