"""`bench throughput`: every engine at every concurrency, in rounds, and what was measured as JSON and CSV."""

import csv
import statistics
from collections.abc import Callable, Iterator
from io import StringIO
from typing import Self

from pydantic import BaseModel, ValidationError

from harness.bench.contest import ALWAYS, PLAIN, STRATEGIES, Contest, requests_at
from harness.bench.engines import Engines
from harness.bench.rounds import Rounds
from harness.bench.tasks import Task
from harness.errors import UsageError
from harness.program import first_problem
from harness.serving.line import Line

VERSION = 1
"""Of the JSON form."""


class Record(BaseModel):
    """One engine at one concurrency in one round."""

    engine: str
    concurrency: int
    turn: int
    """Of the round, from 1."""
    requests: int
    ok: int
    tokens_per_s: float
    wall_s: float
    latency_p50_s: float
    latency_p99_s: float
    tokens_per_step: float | None
    """Of a request, in a decode step; None from an engine that doesn't speculate."""

    @classmethod
    def of(cls, engine: str, turn: int, line: Line) -> Self:
        """What is kept of a line."""
        return cls(
            engine=engine,
            concurrency=line.concurrency,
            turn=turn,
            requests=len(line.replies),
            ok=len(line.right),
            tokens_per_s=line.tokens_per_s,
            wall_s=line.wall_s,
            latency_p50_s=line.latency_s(50),
            latency_p99_s=line.latency_s(99),
            tokens_per_step=line.tokens_per_step,
        )


class Throughput(BaseModel):
    """What was measured until now."""

    version: int = VERSION
    contest: Contest
    boots_s: dict[str, float] = {}
    failures: dict[str, str] = {}
    """Engines that ended, and how."""
    records: list[Record] = []

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read the JSON form; raises UsageError with what is wrong, in one line."""
        try:
            read = cls.model_validate_json(text)
        except ValidationError as error:
            raise UsageError(f"not the JSON of bench throughput: {first_problem(error)}") from None
        if read.version != VERSION:
            raise UsageError(f"version {read.version} isn't {VERSION}, the one that this harness reads")
        return read

    @property
    def concurrencies(self) -> list[int]:
        """Those with any record."""
        return sorted({record.concurrency for record in self.records})

    @property
    def all_right(self) -> bool:
        """Whether every request got its answer, and every engine lived."""
        return not self.failures and all(record.ok == record.requests for record in self.records)

    def rates(self, engine: str, concurrency: int) -> dict[int, float]:
        """Tokens per second, by round."""
        return {
            record.turn: record.tokens_per_s
            for record in self.records
            if (record.engine, record.concurrency) == (engine, concurrency)
        }

    def median_rate(self, engine: str, concurrency: int) -> float | None:
        """Over the rounds; None where there is none."""
        rates = self.rates(engine, concurrency)
        return statistics.median(rates.values()) if rates else None

    def ratios(self, one: str, other: str, concurrency: int) -> list[float]:
        """Of two engines' rates, for each round in which both were measured."""
        over, under = self.rates(one, concurrency), self.rates(other, concurrency)
        return [over[turn] / under[turn] for turn in sorted(over.keys() & under.keys()) if under[turn]]

    def best_untoggled(self, concurrency: int) -> str | None:
        """The quicker of always-spec and the plain engine in the same loop; None unless both were measured."""
        rates = {name: self.median_rate(name, concurrency) for name in (self.contest.plain_in_its_loop, ALWAYS)}
        known = {name: rate for name, rate in rates.items() if rate is not None}
        return max(known, key=lambda name: known[name]) if len(known) == len(rates) else None

    def better_strategy(self, concurrency: int) -> str | None:
        """The toggled engine that keeps up best with the better of the untoggled; None unless one was measured."""
        best = self.best_untoggled(concurrency)
        ratios = {name: self.ratios(name, best, concurrency) for name in STRATEGIES} if best else {}
        medians = {name: statistics.median(values) for name, values in ratios.items() if values}
        return max(medians, key=lambda name: medians[name]) if medians else None

    def comparisons(self) -> Iterator[tuple[int, str, str, list[float]]]:
        """Concurrency, toggled engine, engine that it should keep up with, ratios round by round.

        The last may be one of another loop, plain decoding with overlap scheduling, beside v1.
        """
        for concurrency in self.concurrencies:
            others = {self.best_untoggled(concurrency), PLAIN if self.contest.plain_in_its_loop != PLAIN else None}
            for name in (name for name in STRATEGIES if name in self.contest.engines):
                for other in sorted(filter(None, others)):
                    if ratios := self.ratios(name, other, concurrency):
                        yield concurrency, name, other, ratios

    def to_csv(self) -> str:
        """The records, a row each."""
        written = StringIO()
        writer = csv.DictWriter(written, list(Record.model_fields), lineterminator="\n")
        writer.writeheader()
        writer.writerows(record.model_dump() for record in self.records)
        return written.getvalue()


Told = Callable[[str, Line], None]


def measure(engines: Engines, results: Throughput, rounds: Rounds[int], requests: int | None, told: Told) -> None:
    """Boot all, then fill `results` at each concurrency; `told` sees each line.

    So many `requests` in all, or as many as `requests_at` says.
    """
    engines.boot()
    results.boots_s, results.failures = engines.boots_s, engines.failures
    contest = results.contest

    def task(concurrency: int, number: int) -> Task:
        return contest.held_at(concurrency, requests or requests_at(concurrency), number)

    for turn, concurrency, name, answers in rounds.play(engines, task, contest.warm_up):
        line = answers.line(concurrency)
        results.records.append(Record.of(name, turn, line))
        told(name, line)
