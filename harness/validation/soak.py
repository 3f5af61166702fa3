"""The stage of endurance: the same waves over the threshold again and again, and memory that must not grow."""

from statistics import median
from time import monotonic

from harness.configuration import Worker
from harness.isolation.ran import Ran
from harness.program import Drain, Flush, Program, Step, Submit
from harness.prompts import Prompt
from harness.validation.ending import Ending
from harness.validation.lab import Lab
from harness.validation.stage import Stage

NAME = "soak"
THRESHOLD = 3
LEAST_WAVES = 8
"""Fewer have no quarters to compare."""
MOST_HOST_BYTES, MOST_DEVICE_BYTES = 64 << 20, 1 << 20
"""Growth from the second quarter of the waves to the last; the first quarter may fill caches."""


def soak(lab: Lab) -> Stage:
    """Waves for as long as there is time, the workers side by side, or one after the other where only one may run."""
    ending = Ending(lab, NAME)
    seconds = lab.plan.profile.budget.soak * min(1.0, lab.plan.at_once / len(lab.workers))
    figures: list[tuple[str, str]] = []
    too_few: list[str] = []
    for worker, waves in lab.side_by_side(lambda worker: (worker, _waves(lab, worker, seconds)), lab.workers):
        if waves and waves[-1].outcome.kind != "passes":
            return ending.failed(waves[-1], f"wave {len(waves)} of worker {worker}")
        if len(waves) < LEAST_WAVES:
            too_few.append(f"worker {worker}: {len(waves)} waves")
            continue
        steps = sum(wave.steps for wave in waves)
        host, device = (growth([getattr(wave, name) for wave in waves]) for name in ("host_bytes", "device_bytes"))
        figures.append((f"worker {worker}", f"{steps} steps; host {_mib(host)}, device {_mib(device)}"))
        if host > MOST_HOST_BYTES or device > MOST_DEVICE_BYTES:
            return ending.wrong(f"worker {worker}: memory grows: host {_mib(host)}, device {_mib(device)}", *figures)
    if too_few:
        return ending.unproven(f"{', '.join(too_few)}: too few to judge memory by", *figures)
    return ending.passed("no failure, and memory doesn't grow", *figures)


def wave(lab: Lab, worker: Worker) -> Program:
    """Some 30 steps that cross the threshold both ways and end with empty caches."""
    few = Submit(count=2, prompt=Prompt(period=9, seed=0, length=12), max_new_tokens=50)
    many = Submit(count=7, prompt=Prompt(period=14, seed=0, length=17), max_new_tokens=9)
    config = lab.plan.config(worker, toggle=lab.plan.toggle(THRESHOLD))
    return Program(config=config, operations=(few, Step(count=4), many, Drain(), Flush(), Step()))


def growth(held: list[int]) -> int:
    """Bytes by which the last quarter's middle lies above the second quarter's."""
    quarter = len(held) // 4
    return int(median(held[-quarter:]) - median(held[quarter : 2 * quarter]))


def _waves(lab: Lab, worker: Worker, seconds: float) -> list[Ran]:
    """On one engine, in one process."""
    engines, program, until = lab.engines(), wave(lab, worker), monotonic() + seconds
    waves: list[Ran] = []
    while monotonic() < until:
        ran = lab.run(program, engines=engines)
        if ran is None:
            break
        waves.append(ran)
        if ran.outcome.kind != "passes":
            break
    return waves


def _mib(count: int) -> str:
    return f"{count / (1 << 20):+.1f} MiB"
