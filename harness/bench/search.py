"""`bench search`: how many programs a second warm engines get through, and what the parent adds."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter

from harness.configuration import EngineConfig
from harness.engine.device import Device
from harness.isolation.engines import Engines
from harness.isolation.messages import Run
from harness.isolation.nursery import Nursery
from harness.isolation.ran import Ran
from harness.program import Program
from harness.search.explore import explore
from harness.search.labels import labels
from harness.search.progress import Progress
from harness.search.sampling import program_of
from harness.search.shards import Shard
from harness.search.shrink import Shortest


@dataclass(frozen=True, slots=True)
class Figures:
    """One measurement."""

    threads: int
    programs: int
    steps: int
    seconds: float
    """From the moment that all engines were warm until the last was done."""
    engine_seconds: float
    """What the children spent on their programs, all together."""
    busy_seconds: float
    """What the threads spent, all together: generating, asking, waiting, counting."""

    @property
    def programs_per_second(self) -> float:
        """Over all threads."""
        return self.programs / self.seconds

    @property
    def steps_per_program(self) -> float:
        """Scheduler steps, on average."""
        return self.steps / self.programs

    @property
    def parent_overhead(self) -> float:
        """What the parent adds to the time of the engines, as a share of it."""
        return (self.busy_seconds - self.engine_seconds) / self.engine_seconds


class _Threads:
    """Threads that each explore a shard of their own, all at once."""

    def __init__(self, config: EngineConfig, pools: Sequence[Engines], threads: int, examples: int) -> None:
        self.config, self.examples = config, examples
        self.progress = Progress()
        self.busy_seconds = 0.0
        self.errors: list[BaseException] = []
        self._pools = pools
        self._warm = threading.Barrier(threads + 1)
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._work, args=(number,)) for number in range(threads)]

    def run(self) -> float:
        """Seconds that it took once all engines were warm; raises what ended a thread."""
        for thread in self._threads:
            thread.start()
        self._warm.wait()
        started = perf_counter()
        for thread in self._threads:
            thread.join()
        if self.errors:
            raise self.errors[0]
        return perf_counter() - started

    def _work(self, number: int) -> None:
        engines = self._pools[number % len(self._pools)]
        try:
            warm_up = Program.from_batch_sizes(self.config, [1, self.config.max_running_requests, 1])
            engines.run(Run(warm_up, summary=labels))
            program_of(self.config, number)  # Hypothesis is slow the first time
            self._warm.wait()
            started = perf_counter()
            shortest = Shortest()
            if explore(Shard(number, self.config, number, self.examples), partial(self._run, engines), shortest):
                raise RuntimeError(f"the toggle failed: {shortest.ran}")
            with self._lock:
                self.busy_seconds += perf_counter() - started
        except BaseException as error:
            self.errors.append(error)
            self._warm.abort()

    def _run(self, engines: Engines, program: Program) -> Ran:
        ran = engines.run(Run(program, summary=labels))
        self.progress.count(ran)
        return ran


def measure(config: EngineConfig, device: Device, gpus: Sequence[str | None], threads: int, examples: int) -> Figures:
    """`threads` engines, spread over the GPUs, with `examples` programs each."""
    nurseries = [Nursery(device, gpu) for gpu in gpus]
    pools = [Engines(nursery, -(-threads // len(gpus))) for nursery in nurseries]
    work = _Threads(config, pools, threads, examples)
    try:
        seconds = work.run()
    finally:
        for pool in pools:
            pool.close()
        for nursery in nurseries:
            nursery.close()
    progress = work.progress
    return Figures(threads, progress.programs, progress.steps, seconds, progress.engine_seconds, work.busy_seconds)
