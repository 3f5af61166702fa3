"""Where the checks' time goes: microseconds a step in the harness's own calls, on the main job with all checks.

    python scripts/profile_checks.py v1 cuda

A call that makes others holds their time, too. What a wait costs shows in whoever waits.
"""

import argparse
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch

from harness import fetched
from harness.bench.timing import MAIN_JOB
from harness.checks import MOMENTS, Checks
from harness.configuration import EngineConfig, Toggle, Worker
from harness.engine.device import Device
from harness.engine.engine import Engine
from harness.engine.v0_5_12.graph_watch import GraphWatch
from harness.engine.v0_5_12.later import Later
from harness.engine.v0_5_12.observer import Observer
from harness.observation import After, Forward
from harness.program import Program

WATCHED: dict[type, tuple[str, ...]] = {
    Observer: ("launch", "forward", "forwarded", "processed", "_memory", "_compare", "_look_at_draft", "_saw_replay"),
    GraphWatch: ("_replay", "_poison"),
    Later: ("begin", "finish"),
    Forward: ("own_slots",),
    After: ("pages_owned",),
    fetched.Copy: ("__init__", "values"),
    Checks: MOMENTS,
}
INNER = ((fetched, "_sent"), (fetched, "_words"), (fetched, "_stream"), (torch, "cat"))
"""What a copy is made of; `cat` counts SGLang's own calls, too."""
RUNS = 8


class Times:
    """Nanoseconds and calls, by name."""

    def __init__(self) -> None:
        self.spent: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()

    def watch(self, owner: type, name: str) -> None:
        """Time each call of a method."""
        setattr(owner, name, self.timed(f"{owner.__name__}.{name}", getattr(owner, name)))

    def timed(self, name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        """The same, timed."""

        def call(*args: Any, **kwargs: Any) -> Any:
            started = time.perf_counter_ns()
            try:
                return work(*args, **kwargs)
            finally:
                self.spent[name] += time.perf_counter_ns() - started
                self.calls[name] += 1

        return call

    def told(self, steps: int) -> None:
        """Print all, most costly first."""
        for name, spent in self.spent.most_common():
            calls = self.calls[name]
            a_step, each = spent / steps / 1e3, spent / calls / 1e3
            print(f"{a_step:8.1f} us/step {calls / steps:6.2f} calls/step {each:8.1f} us/call  {name}")


def main() -> None:
    """Run the job a few times, the first ones to warm up."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("worker", choices=[worker.value for worker in Worker])
    parser.add_argument("device", choices=[device.value for device in Device])
    asked = parser.parse_args()
    worker, device = Worker(asked.worker), Device(asked.device)
    device.prepare()
    times = Times()
    for owner, names in WATCHED.items():
        for name in names:
            times.watch(owner, name)
    for owner, name in INNER:
        setattr(owner, name, times.timed(name, getattr(owner, name)))
    config = EngineConfig(worker=worker, toggle=Toggle(threshold=5), dtype="bfloat16")
    program = Program.from_batch_sizes(config, MAIN_JOB, steps_each=16)
    with Engine(config, device) as engine:
        for _ in range(3):
            engine.run(program, checks=Checks(program))
        times.spent.clear()
        times.calls.clear()
        for _ in range(RUNS):
            engine.run(program, checks=Checks(program))
        times.told(RUNS * len(engine.trace.steps))


if __name__ == "__main__":
    main()
