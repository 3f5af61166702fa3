"""Where a patch is tried: warm engines with it, programs side by side, and what they reached, counted."""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from itertools import cycle, islice
from math import inf
from time import monotonic
from types import TracebackType
from typing import Self, TypeVar

from harness.errors import RefusedConfiguration, UsageError
from harness.isolation.child import Interrupted
from harness.isolation.engines import Engines
from harness.isolation.interruption import TICK_SECONDS, Interruption, heeded
from harness.isolation.messages import Run
from harness.isolation.nursery import Nursery
from harness.isolation.ran import Ran
from harness.outcome import Outcome
from harness.patches.stack import sources
from harness.program import Program
from harness.search.environment import environment
from harness.search.finding import Finding
from harness.search.labels import labels
from harness.search.progress import Progress
from harness.search.pursue import Pursuit
from harness.search.shrink import Shortest
from harness.validation.plan import Plan
from harness.validation.stage import Coverage

Item = TypeVar("Item")
Result = TypeVar("Result")
Running = set[Future[Result]]


class Lab:
    """Engines for one validation; shared by its stages."""

    def __init__(self, plan: Plan, watch: Callable[[Progress], None]) -> None:
        self.plan, self.watch = plan, watch
        self.workers = plan.workers
        """Those that are tested: SGLang may refuse one."""
        self.progress = Progress()
        """Of the stage that runs."""
        self._stop = threading.Event()
        each = -(-plan.at_once // len(plan.gpus))
        self._nurseries = [Nursery(plan.device, gpu, plan.limits, sources(plan.patch)) for gpu in plan.gpus]
        # An engine each that runs, and one more: the stages compare configurations with each other.
        self._pools = [Engines(nursery, each + 1) for nursery in self._nurseries]
        self._next = cycle(self._pools)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop.set()
        for pool in self._pools:
            pool.close()
        for nursery in self._nurseries:
            nursery.close()

    def run(self, program: Program, keep_trace: bool = False, engines: Engines | None = None) -> Ran | None:
        """Run a program with all checks, and count it; None where SGLang refuses its configuration.

        It waits for a busy engine rather than boot another: the next program needs one of another configuration.
        """
        engines = engines or self.engines()
        try:
            wanted = Run(program, summary=labels, keep_trace=keep_trace)
            ran = engines.run(wanted, self._stop.is_set, patient=True)
        except RefusedConfiguration as error:
            self.progress.refuse(program.config, str(error))
            return None
        self.progress.count(ran)
        return ran

    def engines(self) -> Engines:
        """A GPU's engines, in turn."""
        return next(self._next)

    @property
    def pools(self) -> Sequence[Engines]:
        """Each GPU's engines."""
        return self._pools

    def side_by_side(
        self, work: Callable[[Item], Result], items: Iterable[Item], until: float = inf
    ) -> Iterator[Result]:
        """The results as they come; no item is begun after `until` (by `monotonic`), or once nobody asks for more."""
        remaining = iter(items)
        with heeded() as interruption, ThreadPoolExecutor(self.plan.at_once) as pool:
            pending = {pool.submit(work, item) for item in islice(remaining, self.plan.at_once)}
            try:
                while pending:
                    done, pending = self._wait(pending, interruption)
                    for future in done:
                        yield future.result()
                        if monotonic() < until:
                            pending |= {pool.submit(work, item) for item in islice(remaining, 1)}
                    if interruption.came:
                        raise KeyboardInterrupt
            finally:
                for future in pending:
                    future.cancel()
                while pending:
                    _, pending = self._wait(pending, interruption)

    def pursue(self, ran: Ran) -> Finding:
        """Shrink a failure and run it again from cold; of a scheduler that doesn't start there is nothing to shrink."""
        pursue = self._start_again if ran.outcome.step is None else self._shorten
        with heeded() as interruption, ThreadPoolExecutor(1) as pool:
            pursuit = pool.submit(pursue, ran)
            pending = {pursuit}
            while pending:  # until it is through, or has what is known by now
                _, pending = self._wait(pending, interruption)
        return pursuit.result()

    def _shorten(self, ran: Ran) -> Finding:
        shortest = Shortest()
        shortest.take(ran)
        pursue = Pursuit(self._pools[0], None, self.plan.at_once, self._stop.is_set, self.progress)
        finding, _ = pursue(shortest, monotonic() + self.plan.profile.budget.shrink)
        return finding

    def _start_again(self, ran: Ran) -> Finding:
        """Once; not where the start hung, for that takes its limit again."""
        again: list[Outcome] = []
        if ran.outcome.kind != "hangs":
            with suppress(Interrupted, UsageError):
                again = [self._nurseries[0].run(Run(ran.program), self._stop.is_set).outcome]
        surroundings = environment(self.plan.device).result()
        return Finding(ran, ran.program, self.plan.device, None, again, [], surroundings)

    def _wait(self, running: Running[Result], interruption: Interruption) -> tuple[Running[Result], Running[Result]]:
        """For one of them, or a moment: which have ended, and which haven't. Once a person wants an end, all shall."""
        ended, others = wait(running, TICK_SECONDS, FIRST_COMPLETED)
        self.watch(self.progress)
        if interruption.came:
            self._stop.set()
        return ended, others

    def coverage(self) -> Coverage:
        """What was reached since the last call."""
        seen, self.progress = self.progress, Progress()
        return coverage_of(seen)


def coverage_of(progress: Progress) -> Coverage:
    """A search's or a stage's counts as a value."""
    return Coverage(
        programs=progress.programs,
        steps=progress.steps,
        crossing=progress.crossing,
        configurations=len(progress.configurations),
        labels=dict(progress.labels),
        looked=dict(progress.looked),
        looked_in_part={name: count for name, count in progress.looked_in_part.items() if count},
        answered=dict(progress.answered),
        imported=tuple(sorted(progress.imported)),
        skipped={f"{check}: {reason}": count for (check, reason), count in progress.skipped.items()},
        refused={str(config): reason for config, reason in progress.refused.items()},
    )
