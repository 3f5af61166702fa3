"""`toggle-harness bench throughput`: plain, always-spec and toggled engines at each concurrency, in one run."""

import statistics
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from harness.bench.rounds import Rounds
from harness.bench.throughput import Record, Throughput, measure
from harness.commands import contests, options
from harness.commands.asked import Asked, asking
from harness.commands.measuring import Row, spread, table_of
from harness.commands.options import numbers_of
from harness.serving.line import Line

OK, NOT_OK = 0, 1
BETTER_LIMIT, WARM_LIMIT = 0.97, 0.90
CONCURRENCIES = "1,2,4,8,16,32,64,128,250"


@asking
def command(
    asked: Asked,
    concurrency: Annotated[
        str, typer.Option(metavar="N,N,...", help="Requests in flight: one enters when another ends.")
    ] = CONCURRENCIES,
    requests: Annotated[
        int | None,
        options.option("In all, at each concurrency [2 to 4 times the concurrency].", min=1),
    ] = None,
    threshold: contests.ThresholdOption = None,
    new_tokens: Annotated[int, typer.Option(min=1, help="Tokens of each answer.")] = 128,
    rounds: contests.RoundsOption = 3,
    minutes: contests.MinutesOption = None,
    server: Annotated[bool, typer.Option("--server", help="Ask live servers over HTTP, not in-process.")] = False,
    output: contests.OutputOption = Path("throughput"),
    png: Annotated[bool, typer.Option("--png", help="Draw the plot as PNG, instead of SVG.")] = False,
) -> int:
    """Tokens per second of plain, always-spec and toggled engines at each concurrency, in turn.

    Writes throughput.json and throughput.csv as it goes, and a plot. Exit code 0 if every request got its answer, 1 if
    not or if an engine ended, 2 for wrong usage; 130 if interrupted, with what was measured written.
    """
    until_s = time.monotonic() + minutes * 60 if minutes is not None else float("inf")
    resolved = asked.device.resolve()
    counts = numbers_of(concurrency, "--concurrency", least=1)
    contest = asked.contest(
        resolved, threshold=threshold, new_tokens=new_tokens, running=max(counts), longest=new_tokens, server=server
    )
    results, folder = Throughput(contest=contest), contests.folder(output)
    console = contests.console(asked.as_json)

    def told(name: str, line: Line) -> None:
        console.print(f"{name:16} {line}", soft_wrap=True)
        _write(results, folder)

    console.print(contest.title, soft_wrap=True)
    try:
        with contests.started(contest, resolved, folder) as running:
            measure(running, results, Rounds(counts, rounds, until_s), requests, told)
    finally:
        if results.records:
            _write(results, folder)
            _draw(results, folder, "png" if png else "svg")
            console.print(table_of("bench throughput", rows(results)))
            console.print(f"results: {folder}", soft_wrap=True)
    if asked.as_json:
        sys.stdout.write(results.model_dump_json() + "\n")
    return OK if results.all_right else NOT_OK


def _write(results: Throughput, folder: Path) -> None:
    contests.write(folder / "throughput.json", results.model_dump_json(indent=1) + "\n")
    contests.write(folder / "throughput.csv", results.to_csv())


def _draw(results: Throughput, folder: Path, kind: str) -> None:
    from harness.report.throughput import picture  # matplotlib takes a second

    contests.write(folder / f"throughput.{kind}", picture(results, kind))


def rows(results: Throughput) -> list[Row]:
    """Medians over the rounds, then each toggled engine against the one that it should keep up with."""
    table: list[Row] = []
    for name in results.contest.engines:
        for concurrency in results.concurrencies:
            records = [r for r in results.records if (r.engine, r.concurrency) == (name, concurrency)]
            if records:
                table.append((f"{name}, C={concurrency}", _rates(records), "", None))
    for concurrency, name, other, ratios in results.comparisons():
        limit = _limit(results, concurrency, name, other)
        table.append(
            (
                f"{name} / {other}, C={concurrency}",
                spread(ratios, "rounds"),
                "" if limit is None else f">= {limit}",
                None if limit is None else statistics.median(ratios) >= limit,
            )
        )
    return table


def _limit(results: Throughput, concurrency: int, name: str, other: str) -> float | None:
    """What the ratio should reach: of the better strategy most, of warm in any case."""
    if other != results.best_untoggled(concurrency):
        return None
    if name == results.better_strategy(concurrency):
        return BETTER_LIMIT
    return WARM_LIMIT if name == "warm" else None


def _rates(records: list[Record]) -> str:
    rates = [record.tokens_per_s for record in records]
    steps = [record.tokens_per_step for record in records if record.tokens_per_step is not None]
    each = f", {statistics.median(steps):.2f} tokens a step" if steps else ""
    return f"{statistics.median(rates):.1f} tok/s ({min(rates):.1f} to {max(rates):.1f}){each}"
