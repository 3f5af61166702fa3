"""`toggle-harness detect`: the matrix of seeded faults and checks, and how long a search takes to find each."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from harness.cases import load
from harness.commands import children, options
from harness.commands.options import DeviceChoice
from harness.detection import detect, patched_folders
from harness.engine.device import Device
from harness.errors import UsageError
from harness.isolation.nursery import Nursery
from harness.patches.stack import UNCHANGED
from harness.patches.workers import names
from harness.report import detection as page_of
from harness.validation.profile import Profile

CAUGHT, MISSED = 0, 1


def command(
    device: options.DeviceOption = DeviceChoice.AUTO,
    page: Annotated[
        Path | None, typer.Option("--write", help="Replace this device's section of a page.", show_default=False)
    ] = None,
    search: Annotated[bool, typer.Option("--search", help="Search each from nothing but its patch instead.")] = False,
    validate: Annotated[Profile | None, options.option("Validate each with this profile instead.")] = None,
    seconds: Annotated[float, typer.Option(min=1, help="Of each search, before it gives up.")] = 120.0,
    seed: Annotated[int, typer.Option(min=0, help="Of each search.")] = 1,
    workers: options.WorkersOption = "auto",
) -> int:
    """Run each attempt and seeded fault with all checks, each alone and none; or search each, or validate each.

    Exit code 0 if all are caught, 1 if not, 2 for wrong usage.
    """
    if search and validate is not None:
        raise UsageError("--search or --validate, not both")
    if page is not None and not page.parent.is_dir():
        raise UsageError(f"--write {page}: no such folder")
    resolved = device.resolve()
    resolved.check()
    gpu = children.identifiers(resolved)[0]
    at_once = children.at_once(workers, resolved, 1)
    say = partial(Console(stderr=True, highlight=False).print, soft_wrap=True, markup=False)
    if validate is not None:
        section, all_of_them = _validate(resolved, gpu, validate, at_once, say)
    elif search:
        section, all_of_them = _search(resolved, gpu, seconds, seed, at_once, say)
    else:
        section, all_of_them = _detect(resolved, gpu, at_once, say)
    if page is None:
        typer.echo(section)
    else:
        page_of.write(page, section)
    return CAUGHT if all_of_them else MISSED


def _detect(device: Device, gpu: str | None, at_once: int, say: Callable[[str], None]) -> tuple[str, bool]:
    detected = []
    with Nursery(device, gpu) as nursery:
        cases = [load(folder) for folder in patched_folders()]
        detections = children.side_by_side(lambda case, stopped: detect(case, nursery, stopped), cases, at_once)
        for case, seen in detections:
            detected.append(seen)
            say(f"{case.name}: {seen.first}")
    return page_of.section(device, detected), all(one.first.kind != "passes" for one in detected)


def _validate(
    device: Device, gpu: str | None, profile: Profile, at_once: int, say: Callable[[str], None]
) -> tuple[str, bool]:
    from harness.validation.trial import try_out  # imports Hypothesis

    tried = []
    for patch in names():
        one = try_out(patch, device, (gpu,), profile, at_once)
        tried.append(one)
        say(f"{patch}: {one.verdict} after {one.seconds:.0f} s, {one.stage or 'no stage failed'}: {one.outcome or ''}")
    return page_of.validated(device, profile, tried), all(one.right for one in tried)


def _search(
    device: Device, gpu: str | None, seconds: float, seed: int, at_once: int, say: Callable[[str], None]
) -> tuple[str, bool]:
    from harness.search.hunt import hunt  # imports Hypothesis

    hunted = []
    for patch in names():
        if patch != UNCHANGED:
            hunted.append(hunt(patch, device, gpu, seconds, seed, at_once))
            say(f"{patch}: {hunted[-1].outcome or 'not found'} after {hunted[-1].seconds:.0f} s")
    return page_of.searched(device, hunted), all(one.outcome is not None for one in hunted)
