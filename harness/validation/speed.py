"""The stage of step times: the patched engine against a plain one and an always-spec one, by batch size."""

from functools import partial
from statistics import median

from harness.bench import curve
from harness.bench.contest import PLAIN
from harness.bench.engines import EngineFailed
from harness.engine.device import Device
from harness.errors import UsageError
from harness.validation.ending import Ending
from harness.validation.lab import Lab
from harness.validation.stage import Curve, Stage

NAME = "step times"
SIZES = (1, 2, 4, 8, 16)
MOST = 0.75
"""Share of the rounds that makes what their median says certain."""


def speed(lab: Lab) -> Stage:
    """Measure in processes of their own; on a GPU a patch that is much slower than it should be is no good.

    Much slower in most rounds: the host's speed may change within one. Where fewer have it, nothing is proven.
    """
    ending, plan = Ending(lab, NAME), lab.plan
    allowed = f"at most {plan.most_step_ratio:g} is allowed"
    seconds = plan.profile.budget.speed / len(lab.workers)
    curves: list[Curve] = []
    figures: list[tuple[str, str]] = []
    slow: list[str] = []
    unsteady: list[str] = []
    for worker in lab.workers:
        engines = curve.engines(plan.config(worker, graphs=SIZES), plan.device, plan.gpus[0])
        try:
            measured = curve.measure(engines, SIZES, seconds, partial(_tell, lab, worker))
        except (EngineFailed, UsageError) as error:
            return ending.unproven(f"worker {worker}, {error}: run it again, or mend what ends it", *figures)
        curves += _curves(worker, measured)
        for size, other, ratios in measured.ratios(plan.threshold):
            figures.append((f"{worker}, {size} requests, patched / {other}", _spread(ratios)))
            if median(ratios) > plan.most_step_ratio:
                over = sum(ratio > plan.most_step_ratio for ratio in ratios)
                said = f"{median(ratios):.2f} of {other} at {size} requests with {worker}"
                (slow if over >= MOST * len(ratios) else unsteady).append(said)
    if plan.device is Device.CPU:
        stage = ending.passed("measured; on the emulated device the ratios say little, and aren't judged", *figures)
    elif slow:
        stage = ending.wrong(f"a step takes {', '.join(slow)}; {allowed}", *figures)
    elif unsteady:
        said = f"a step takes {', '.join(unsteady)}, but not in most rounds; {allowed}: run it again"
        stage = ending.unproven(said, *figures)
    else:
        stage = ending.passed(f"no step takes more than {plan.most_step_ratio:g} of what it should", *figures)
    return stage.model_copy(update={"curves": tuple(curves)})


def _tell(lab: Lab, worker: str, turn: int) -> None:
    lab.progress.doing = f"{NAME}, {worker}, round {turn}"
    lab.watch(lab.progress)


def _curves(worker: str, measured: curve.Curves) -> list[Curve]:
    return [
        Curve(
            engine=f"{worker}, {name}" if name != PLAIN else f"plain, beside {worker}",
            batch_sizes=measured.batch_sizes,
            step_ms=tuple(median(each.step_ms for each in rounds) for rounds in by_size),
            tokens_per_s=tuple(median(each.tokens_per_s for each in rounds) for rounds in by_size),
        )
        for name, by_size in measured.engines.items()
    ]


def _spread(ratios: list[float]) -> str:
    rounds = f"{len(ratios)} round{'s' * (len(ratios) != 1)}"
    return f"{median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f}, {rounds})"
