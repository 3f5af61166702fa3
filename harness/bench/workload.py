"""`bench workload`: concurrency that crosses the threshold, the same for every engine, and what switches cost."""

import statistics
from collections.abc import Callable
from typing import Self

from pydantic import BaseModel

from harness.bench.contest import ALWAYS, STRATEGIES, WARM_UP_TOKENS, Contest
from harness.bench.engines import Engines
from harness.bench.patterns import in_flight, lengths
from harness.bench.rounds import Rounds
from harness.bench.tasks import Switches, Switching, Task, Wanted
from harness.serving.line import Line

SEED = 7


class Crossing(BaseModel):
    """One engine's run through the pattern in one round."""

    engine: str
    pattern: str
    turn: int
    """Of the round, from 1."""
    requests: int
    ok: int
    total_s: float
    """From the first request that entered to the last that ended."""
    tokens_per_s: float
    latency_p50_s: float
    latency_p90_s: float
    latency_p99_s: float

    @classmethod
    def of(cls, engine: str, pattern: str, turn: int, line: Line) -> Self:
        """What is kept of a run."""
        return cls(
            engine=engine,
            pattern=pattern,
            turn=turn,
            requests=len(line.replies),
            ok=len(line.right),
            total_s=line.wall_s,
            tokens_per_s=line.tokens_per_s,
            latency_p50_s=line.latency_s(50),
            latency_p90_s=line.latency_s(90),
            latency_p99_s=line.latency_s(99),
        )


class Workload(BaseModel):
    """What was measured until now."""

    contest: Contest
    low: int
    high: int
    failures: dict[str, str] = {}
    """Engines that ended, and how."""
    records: list[Crossing] = []
    switches: dict[str, Switches] = {}
    """By engine."""

    @property
    def patterns(self) -> list[str]:
        """Those with any record, as they were first measured."""
        return list(dict.fromkeys(record.pattern for record in self.records))

    @property
    def all_right(self) -> bool:
        """Whether every request got its answer, and every engine lived."""
        return not self.failures and all(record.ok == record.requests for record in self.records)

    def of(self, engine: str, pattern: str) -> list[Crossing]:
        """One engine's rounds."""
        return [record for record in self.records if (record.engine, record.pattern) == (engine, pattern)]

    def best_untoggled(self, pattern: str) -> str | None:
        """The quicker of always-spec and the plain engine in the same loop; None unless both were measured."""
        runs = {name: self.of(name, pattern) for name in (self.contest.plain_in_its_loop, ALWAYS)}
        if not all(runs.values()):
            return None
        return min(runs, key=lambda name: statistics.median(record.total_s for record in runs[name]))

    def gains(self, engine: str, pattern: str) -> tuple[str, list[float]] | None:
        """The best untoggled engine, and its total time over this one's by round; None where one wasn't measured."""
        other = self.best_untoggled(pattern)
        if other is None:
            return None
        mine = {record.turn: record.total_s for record in self.of(engine, pattern)}
        pairs = [(record.total_s, mine[record.turn]) for record in self.of(other, pattern) if record.turn in mine]
        return (other, [slow / quick for slow, quick in pairs]) if pairs else None


Told = Callable[[Crossing], None]


def measure(engines: Engines, results: Workload, rounds: Rounds[str], requests: int, told: Told) -> None:
    """Boot all, measure what switches cost, then fill `results` with each pattern; `told` sees each run."""
    engines.boot()
    results.failures = engines.failures
    contest = results.contest
    _switch(engines, results)
    answers_of = lengths(requests, contest.new_tokens, SEED)

    def task(pattern: str, number: int) -> Task:
        return contest.task(answers_of, in_flight(pattern, requests, results.low, results.high), number)

    def warm_up(pattern: str) -> Task:
        """The pattern itself: kernels are compiled for batches of all its sizes, and with the first for all lengths."""
        answers = answers_of if pattern == rounds.things[0] else (WARM_UP_TOKENS,) * requests
        return contest.task(answers, in_flight(pattern, requests, results.low, results.high), 0)

    for turn, pattern, name, answers in rounds.play(engines, task, warm_up):
        results.records.append(Crossing.of(name, pattern, turn, answers.line(results.high)))
        told(results.records[-1])


def _switch(engines: Engines, results: Workload) -> None:
    """Twice, the first time to compile what is needed."""
    contest = results.contest
    wanted = Wanted(switching=Switching(threshold=contest.threshold, prompt_tokens=contest.prompt_tokens))
    for name in (contest.plain_in_its_loop, *STRATEGIES):
        for _ in range(2):
            said = engines.ask(name, wanted)
            if said is not None and said.switches is not None:
                results.switches[name] = said.switches
