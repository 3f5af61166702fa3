"""The stage of step times: the patched engine against a plain one and an always-spec one, by batch size."""

import os
import subprocess
import sys
from statistics import median

from pydantic import ValidationError

from harness.bench.curve import Curves
from harness.engine.device import Device
from harness.isolation.gpus import on_gpu
from harness.validation.ending import Ending
from harness.validation.lab import Lab
from harness.validation.stage import Curve, Stage

NAME = "step times"
PATIENCE_SECONDS = 240
"""Beyond the budget: a round that was begun ends."""


def speed(lab: Lab) -> Stage:
    """Measure in a process of its own; on a GPU a patch that is much slower than it should be is no good.

    Much slower in every round: a round's engines run one after the other, and a host's speed may change in between.
    Where only some rounds have it, nothing is proven.
    """
    ending, plan = Ending(lab, NAME), lab.plan
    seconds = plan.profile.budget.speed / len(lab.workers)
    environment = os.environ | on_gpu(plan.gpus[0])
    curves: list[Curve] = []
    figures: list[tuple[str, str]] = []
    slow: list[str] = []
    unsteady: list[str] = []
    for worker in lab.workers:
        config = plan.config(worker, graphs=(1, 2, 4, 8, 16), max_running_requests=16)
        arguments = (config.model_dump_json(), plan.device.value, f"{seconds}")
        command = [sys.executable, "-m", "harness.bench.curve", *arguments]
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                timeout=seconds + PATIENCE_SECONDS,
                check=False,
                env=environment,
            )
        except subprocess.TimeoutExpired:
            return ending.unproven(f"worker {worker}: the measurement took too long", *figures)
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["nothing was said"])[-1]
            return ending.unproven(f"worker {worker}: the measurement ended with code {done.returncode}: {last}")
        try:
            measured = Curves.model_validate_json(done.stdout)
        except ValidationError:
            said = f"{done.stdout[-200:]!r}: let the patch write nothing to standard output"
            return ending.unproven(f"worker {worker}: the measurement's figures can't be read, but {said}")
        curves += [
            Curve(
                engine=f"{worker}, {name}" if name != "plain" else f"plain, beside {worker}",
                batch_sizes=measured.batch_sizes,
                step_ms=tuple(median(ms) for ms in rounds.step_ms),
                tokens_per_s=tuple(median(rate) for rate in rounds.tokens_per_s),
            )
            for name, rounds in measured.engines.items()
        ]
        for size, other, ratios in measured.ratios(plan.threshold):
            figures.append((f"{worker}, {size} requests, patched / {other}", _spread(ratios)))
            if median(ratios) > plan.most_step_ratio:
                always = min(ratios) > plan.most_step_ratio
                said = f"{median(ratios):.2f} of {other} at {size} requests with {worker}"
                (slow if always else unsteady).append(said)
    allowed = f"at most {plan.most_step_ratio:g} is allowed"
    if slow and plan.device is Device.CUDA:
        stage = ending.wrong(f"a step takes {', '.join(slow)}; {allowed}", *figures)
    elif unsteady and plan.device is Device.CUDA:
        said = f"a step takes {', '.join(unsteady)}, but not in every round; {allowed}: run it again"
        stage = ending.unproven(said, *figures)
    elif plan.device is Device.CPU:
        stage = ending.passed("measured; on the emulated device the ratios say little, and aren't judged", *figures)
    else:
        stage = ending.passed(f"no step takes more than {plan.most_step_ratio:g} of what it should", *figures)
    return stage.model_copy(update={"curves": tuple(curves)})


def _spread(ratios: list[float]) -> str:
    rounds = f"{len(ratios)} round{'s' * (len(ratios) != 1)}"
    return f"{median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f}, {rounds})"
