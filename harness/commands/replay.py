"""`toggle-harness replay`: run cases and compare what happens with what they say must happen."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from harness.cases import EXPECTED, Case, Expected, all_folders, load, replay
from harness.commands import children, options
from harness.commands.options import DeviceChoice
from harness.engine.device import Device
from harness.errors import UsageError
from harness.isolation.nursery import Nurseries
from harness.outcome import Outcome

AS_RECORDED, CHANGED = 0, 1


def command(
    folders: Annotated[
        list[Path] | None, typer.Argument(metavar="CASE ...", help="Folders of cases.", show_default=False)
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every case below cases/.")] = False,
    device: options.DeviceOption = DeviceChoice.AUTO,
    workers: options.WorkersOption = "auto",
    record: Annotated[bool, typer.Option("--record", help="Write what happens as what must happen.")] = False,
    times: Annotated[int, typer.Option(min=1, help="Run each so often, in a cold process each time.")] = 1,
) -> int:
    """Run cases on the real scheduler with all checks on.

    Exit code 0 if all behave as recorded, 1 if any doesn't, 2 for wrong usage.
    """
    if bool(folders) == everything:
        raise UsageError("name the folders of cases, or give --all")
    if record and times > 1:
        raise UsageError("--record writes one run: leave out --times")
    resolved = device.resolve()
    chosen = all_folders() if everything else folders or []
    loaded = [(folder, load(folder)) for folder in chosen]
    resolved.check()
    console = Console(highlight=False)
    due = [one for one in loaded if record or one[1].expected.on(resolved) is not None]
    for _, case in loaded:
        if case.expected.on(resolved) is None and not record:
            console.print(f"[yellow]{case.name}[/yellow]: nothing is recorded for {resolved}", soft_wrap=True)
    gpus = children.identifiers(resolved)
    results = []
    with Nurseries(resolved, gpus[0]) as nurseries:
        at_once = children.at_once(workers, resolved, 1)
        runs = [one for one in due for _ in range(times)]
        replayed = children.side_by_side(lambda one, stopped: replay(one[1], nurseries, stopped), runs, at_once)
        for (folder, case), seen in replayed:
            if record:
                _record(folder, case.expected, resolved, seen)
                console.print(f"{case.name}: {seen}", soft_wrap=True, markup=False)
            else:
                results.append(_as_recorded(case, resolved, seen, console))
    what = f"{len(loaded)} cases" if times == 1 else f"{len(loaded) * times} cold runs"
    console.print(f"{what} recorded" if record else f"{results.count(True)} of {what} as recorded")
    return AS_RECORDED if all(results) else CHANGED


def _as_recorded(case: Case, device: Device, seen: Outcome, console: Console) -> bool:
    expected = case.expected.on(device)
    assert expected is not None
    if not seen.meets(expected):
        console.print(f"[red]{case.name}[/red]: {expected}", soft_wrap=True)
        console.print(f"  but now: {seen}", soft_wrap=True, markup=False)
        return False
    console.print(f"[green]{case.name}[/green]: ", end="")
    console.print(str(seen), soft_wrap=True, markup=False)
    return True


def _record(folder: Path, expected: Expected, device: Device, seen: Outcome) -> None:
    written = expected.model_copy(update={device.value: seen})
    (folder / EXPECTED).write_text(written.model_dump_json(indent=2, exclude_none=True) + "\n")
