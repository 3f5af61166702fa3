"""`toggle-harness detect`: the matrix of seeded faults and checks."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from harness.cases import load
from harness.commands import children, options
from harness.commands.options import DeviceChoice
from harness.detection import detect, patched_folders
from harness.errors import UsageError
from harness.isolation.nursery import Nursery
from harness.report.detection import section, write

CAUGHT, MISSED = 0, 1


def command(
    device: options.DeviceOption = DeviceChoice.AUTO,
    page: Annotated[
        Path | None, typer.Option("--write", help="Replace this device's section of a page.", show_default=False)
    ] = None,
    workers: options.WorkersOption = "auto",
) -> int:
    """Run each attempt and seeded fault with all checks, each alone and none.

    Exit code 0 if all are caught, 1 if not, 2 for wrong usage.
    """
    if page is not None and not page.parent.is_dir():
        raise UsageError(f"--write {page}: no such folder")
    resolved = device.resolve()
    resolved.check()
    progress = Console(stderr=True, highlight=False)
    detected = []
    cases = [load(folder) for folder in patched_folders()]
    gpus = children.identifiers(resolved)
    with Nursery(resolved, gpus[0]) as nursery:
        work = partial(detect, nursery=nursery)
        for case, seen in children.side_by_side(work, cases, children.at_once(workers, resolved, 1)):
            detected.append(seen)
            progress.print(f"{case.name}: {seen.first}", soft_wrap=True, markup=False)
    if page is None:
        typer.echo(section(resolved, detected))
    else:
        write(page, resolved, detected)
    return CAUGHT if all(one.first.kind != "passes" for one in detected) else MISSED
