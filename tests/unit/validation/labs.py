"""Labs without engines: what a program does is made up."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from harness.isolation.ran import Ran
from harness.outcome import Outcome
from harness.program import Program
from harness.search.finding import Finding
from harness.search.progress import Progress
from harness.trace import Trace, TraceStep
from harness.validation.lab import coverage_of
from harness.validation.stage import Coverage
from tests.unit.validation.reports import plan

Runs = Callable[[Program], Ran | None]


class MadeUpLab:
    """In the place of `Lab`; `runs` says how a program ends, None that its configuration is refused."""

    def __init__(self, folder: Path, runs: Runs, colds: Sequence[Outcome] = (), **changes: Any) -> None:
        self.plan = plan(folder, **changes)
        self.workers = self.plan.workers
        self.progress = Progress()
        self._runs, self._colds = runs, colds

    def run(self, program: Program, keep_trace: bool = False, engines: object = None) -> Ran | None:
        ran = self._runs(program)
        if ran is None:
            self.progress.refuse(program.config, "no such kernel")
        return ran

    def side_by_side(self, work: Callable[[Any], Any], items: Iterable[Any], until: float = 0) -> Iterator[Any]:
        return map(work, items)

    def engines(self) -> None:
        pass

    def watch(self, progress: Progress) -> None:
        pass

    def pursue(self, ran: Ran) -> Finding:
        return Finding(ran, ran.program, self.plan.device, None, self._colds, [], "")

    def coverage(self) -> Coverage:
        return coverage_of(self.progress)


def passes(program: Program, *steps: tuple[int, bool]) -> Ran:
    """A run with these decode steps: the batch size, and whether it was a spec step."""
    rows = [
        TraceStep(index, "TARGET_VERIFY", requests=tuple(range(size)), tokens_in=size * (4 if spec else 1))
        for index, (size, spec) in enumerate(steps)
    ]
    return Ran(program, Outcome(kind="passes"), program, trace=Trace(steps=rows), labels=Counter())
