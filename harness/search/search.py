"""A search: threads that explore shards on warm engines until one finds a failure, which is then shrunk."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from time import monotonic

from hypothesis.database import ExampleDatabase

from harness.configuration import EngineConfig
from harness.engine.device import Device
from harness.errors import RefusedConfiguration
from harness.isolation.child import Interrupted, Limits
from harness.isolation.engines import Engines
from harness.isolation.interruption import TICK_SECONDS, heeded
from harness.isolation.messages import Run
from harness.isolation.nursery import Nursery
from harness.isolation.ran import Ran
from harness.patches.stack import sources
from harness.program import Program
from harness.search import known
from harness.search.explore import explore
from harness.search.finding import Finding
from harness.search.labels import labels
from harness.search.progress import Progress
from harness.search.pursue import Pursuit
from harness.search.shards import Shard, shards
from harness.search.shrink import Shortest

OF_HYPOTHESIS = 0.5
"""Share of the time for shrinking that Hypothesis may take before the domain pass."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a search is to do."""

    grid: Sequence[EngineConfig]
    """The patch is part of each configuration."""
    device: Device
    seed: int
    examples: int | None = None
    """Programs in all; None as many as `seconds` allow."""
    seconds: float | None = None
    threads: int = 2
    """Programs that run at once, spread over `gpus`."""
    gpus: Sequence[str | None] = (None,)
    shrink_seconds: float = 60.0
    limits: Limits = field(default_factory=Limits)
    database: ExampleDatabase | None = None


class Search:
    """Runs a plan; `run` blocks, `stop` may be called from anywhere."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.progress = Progress()
        self.interrupted = False
        """Whether it was stopped before it was through."""
        self.error: BaseException | None = None
        """What ended a thread that no program is to blame for."""
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._finder: int | None = None
        self._found_at = 0.0
        self._shards = self._in_order()
        self._finding: Finding | None = None

    def run(
        self, watch: Callable[[Progress], None] = lambda _: None, pools: Sequence[Engines] | None = None
    ) -> Finding | None:
        """Search, calling `watch` now and then; returns what was found, also when it was stopped meanwhile.

        With `pools` it uses these engines, one a GPU, and leaves them open. Raises what ended a thread that no program
        is to blame for, such as a full disk.
        """
        if pools is not None:
            return self._run_on(pools, watch)
        plan = self.plan
        each = -(-plan.threads // len(plan.gpus))
        with ExitStack() as open_ones:
            changes = sources(plan.grid[0].patch)
            nurseries = [open_ones.enter_context(Nursery(plan.device, gpu, plan.limits, changes)) for gpu in plan.gpus]
            return self._run_on([open_ones.enter_context(Engines(one, each + 2)) for one in nurseries], watch)

    def _run_on(self, pools: Sequence[Engines], watch: Callable[[Progress], None]) -> Finding | None:
        plan = self.plan
        with heeded() as interruption, ThreadPoolExecutor(plan.threads, "search") as pool:
            try:
                working = {pool.submit(self._work, pools[number % len(pools)]) for number in range(plan.threads)}
                while working:
                    working = wait(working, TICK_SECONDS, FIRST_COMPLETED).not_done
                    watch(self.progress)
                    if interruption.came:
                        self.stop()
            finally:
                self._stop.set()
        if self._finding is None and self.error is not None:
            raise self.error
        return self._finding

    def stop(self) -> None:
        """End soon, with what was found until then."""
        self.interrupted = True
        self._stop.set()

    def _in_order(self) -> Iterator[Shard]:
        """The plan's shards, those of configurations that have failed before first."""
        plan = self.plan
        before = known.failed_before(plan.database, plan.grid) if plan.database is not None else []
        rest = [config for config in plan.grid if config not in before]
        return shards([*before, *rest], plan.seed, plan.examples)

    def _work(self, engines: Engines) -> None:
        try:
            while not self._over():
                with self._lock:
                    shard = next(self._shards, None)
                if shard is None:
                    return
                self._explore(shard, engines)
        except Interrupted:
            pass
        except BaseException as error:  # shown by whoever waits for the thread
            self.error = error
            self._stop.set()

    def _explore(self, shard: Shard, engines: Engines) -> None:
        shortest, database = Shortest(), self.plan.database
        of_config = known.Of(database, shard.config) if database is not None else None
        self.progress.doing = f"shard {shard.number}"
        try:
            failed = explore(shard, partial(self._run_one, engines, shortest), shortest, of_config)
        except RefusedConfiguration as error:
            self.progress.refuse(shard.config, str(error))
            return
        except Interrupted:
            failed = shortest.ran is not None
            if not failed or not self._is_finder():
                raise
        if failed and self._is_finder():
            if database is not None:
                known.remember(database, shard.config)
            self._finding = self._pursue(shortest, engines)
        elif database is not None and not failed:
            known.forget(database, shard.config)

    def _run_one(self, engines: Engines, shortest: Shortest, program: Program) -> Ran:
        """Run one program for Hypothesis; raises Interrupted where it shall end."""
        if self._over() or monotonic() > self._shrinks_until(OF_HYPOTHESIS):
            raise Interrupted
        ran = engines.run(Run(program, summary=labels), self._over)
        self.progress.count(ran)
        if ran.outcome.kind != "passes" and not self._claim():
            raise Interrupted  # another thread found something first
        return ran

    def _over(self) -> bool:
        if self._stop.is_set() or self._finding is not None:
            return True
        if self._finder is not None and not self._is_finder():
            return True
        seconds = self.plan.seconds
        return self._finder is None and seconds is not None and self.progress.seconds > seconds

    def _claim(self) -> bool:
        with self._lock:
            if self._finder is None:
                self._finder, self._found_at = threading.get_ident(), monotonic()
        return self._is_finder()

    def _is_finder(self) -> bool:
        return self._finder == threading.get_ident()

    def _shrinks_until(self, share: float = 1.0) -> float:
        return self._found_at + share * self.plan.shrink_seconds if self._finder is not None else float("inf")

    def _pursue(self, shortest: Shortest, engines: Engines) -> Finding:
        plan = self.plan
        pursue = Pursuit(engines, plan.seed, plan.threads, self._stop.is_set, self.progress)
        finding, error = pursue(shortest, self._shrinks_until())
        self.error = error or self.error
        return finding
