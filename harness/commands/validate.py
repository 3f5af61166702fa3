"""`toggle-harness validate`: is this patch safe to deploy?"""

import os
import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from time import monotonic
from typing import Annotated

import typer
from rich.console import Console

from harness.commands import children, options
from harness.commands.options import DeviceChoice
from harness.commands.watching import Watching
from harness.configuration import DEFAULT_SETTING, Worker
from harness.engine.device import Device
from harness.errors import BrokenPatch
from harness.isolation.gpus import VISIBLE
from harness.patches.frozen import frozen
from harness.patches.given import patch_of
from harness.patches.overlay import copy_for
from harness.patches.stack import sources
from harness.patches.workers import strategy_of
from harness.validation.plan import Plan, workers_of
from harness.validation.profile import Profile
from harness.validation.stage import Stage, Status
from harness.validation.verdict import Verdict

COLOURS = {Status.PASSED: "green", Status.FAILED: "red", Status.UNPROVEN: "yellow", Status.LEFT_OUT: "dim"}


def command(
    patch: Annotated[
        list[str],
        typer.Argument(metavar="PATCH ...", help="A diff, a plugin module:function, a checkout or a name; or a stack."),
    ],
    profile: Annotated[
        Profile, typer.Option(help="quick takes 2 minutes, standard 15, release 60.")
    ] = Profile.STANDARD,
    device: options.DeviceOption = DeviceChoice.AUTO,
    gpus: Annotated[str | None, options.option("GPUs by index or UUID, e.g. 0,1 [all that are free].")] = None,
    workers: options.WorkersOption = "auto",
    worker: Annotated[Worker | None, options.option("Of the two only this one [those that the patch is for].")] = None,
    threshold: Annotated[int, typer.Option(min=1, help="Of the stages that have none of their own.")] = 5,
    threshold_setting: options.ThresholdSettingOption = DEFAULT_SETTING,
    strategy: options.StrategyOption = None,
    seed: Annotated[int, typer.Option(min=0, help="Of all that is random.")] = 0,
    most_skipped: Annotated[
        float, typer.Option(min=0, max=1, help="Share of what checks look at that may be left out.")
    ] = 0.1,
    most_step_ratio: Annotated[
        float, typer.Option(min=0, help="On a GPU: most that a step may take, against the engine it should match.")
    ] = 1.5,
    output: Annotated[Path, typer.Option(help="Folder of the report.")] = Path("validation"),
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what was interrupted.")] = False,
) -> int:
    """Try a patch in every way that this project knows, and say whether it is safe, with a report as evidence.

    Exit code 0 if it is safe, 1 if it is unsafe, 3 if that isn't proven, 2 for wrong usage.
    """
    tested = patch_of(patch)
    plan = _placed(
        Plan(
            patch=frozen(tested),
            title=" + ".join(patch),
            device=_device(device),
            profile=profile,
            output=output,
            workers=workers_of(options.worker_of(tested, worker)),
            threshold=threshold,
            threshold_setting=options.checked_setting(threshold_setting),
            strategy=strategy or strategy_of(tested),
            seed=seed,
            most_skipped=most_skipped,
            most_step_ratio=most_step_ratio,
        ),
        gpus,
        workers,
    )
    with suppress(BrokenPatch):  # that is a finding, for the report
        copy_for(sources(plan.patch))
    return _validate(plan, resume, Console(highlight=False))


def _validate(plan: Plan, resume: bool, console: Console) -> int:
    from harness.report.validation import pages
    from harness.validation.record import Record
    from harness.validation.runner import validate

    record, began, started = Record(plan, resume), monotonic(), datetime.now(UTC)
    pages.forget(plan.output)
    console.print(
        f"validating {plan.title} on {plan.device}: profile {plan.profile}, worker "
        f"{' and '.join(plan.workers)}, {plan.at_once} programs at once",
        soft_wrap=True,
        markup=False,
    )
    stages = []
    with Watching(Console(stderr=True, highlight=False)) as watching:
        for stage in validate(plan, record, watching.show):
            stages.append(stage)
            if stage.status is not Status.LEFT_OUT:
                _say(stage, console)
    _say_left_out(stages, console)
    report = pages.Report.of(plan, stages, started, monotonic() - began, shlex.join(["toggle-harness", *sys.argv[1:]]))
    written = pages.write(report, plan.output)
    for stage in stages:
        if stage.failure is not None and stage.failure.folder is not None:
            console.print(f"reproducer: {plan.output / stage.failure.folder}", soft_wrap=True, markup=False)
    for reason in report.reasons if report.verdict is Verdict.UNPROVEN else ():
        console.print(f"- {reason}", soft_wrap=True, markup=False)
    console.print(report.headline, soft_wrap=True, markup=False, style="bold")
    console.print(str(written), soft_wrap=True, markup=False)
    return report.verdict.exit_code


def _say_left_out(stages: Sequence[Stage], console: Console) -> None:
    """In one line for each reason."""
    left_out = [stage for stage in stages if stage.status is Status.LEFT_OUT]
    for reason, those in groupby(left_out, key=lambda stage: stage.said):
        names = ", ".join(stage.name for stage in those)
        console.print("[dim]left out[/dim]  ", end="")
        console.print(f"{names}: {reason}", soft_wrap=True, markup=False)


def _say(stage: Stage, console: Console) -> None:
    colour = COLOURS[stage.status]
    console.print(f"[{colour}]{stage.status:9}[/{colour}] {stage.name} ({stage.seconds:.0f} s): ", end="")
    console.print(stage.said, soft_wrap=True, markup=False)


def _device(choice: DeviceChoice) -> Device:
    """The device asked for: that there is none is a finding, not a mistake."""
    return Device.CUDA if choice is DeviceChoice.CUDA else choice.resolve()


def _placed(plan: Plan, gpus: str | None, workers: str) -> Plan:
    """With the GPUs that there are, and the number of programs at once."""
    if gpus is not None:
        os.environ[VISIBLE] = gpus
    if plan.device is Device.CUDA and Device.auto() is not Device.CUDA:
        return plan
    found = children.identifiers(plan.device)
    return replace(plan, gpus=tuple(found), at_once=children.at_once(workers, plan.device, len(found)))
