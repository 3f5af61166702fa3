"""What the bench commands share: a process of its own to measure in, and the table of figures with their targets."""

import statistics
import subprocess
import sys

from rich.table import Table

from harness.engine.device import Device
from harness.errors import UsageError

Row = tuple[str, str, str, bool | None]
"""Figure, measured, target, and whether that is met; None where there is no target."""


def spread(ratios: list[float], of: str) -> str:
    """Median, least and most of ratios, one for each of `of`."""
    return f"{statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f}, {len(ratios)} {of})"


def in_a_new_process(module: str, device: Device, *arguments: str) -> str:
    """What `python -m MODULE ARGUMENTS` writes; raises UsageError where the device is missing or the process fails."""
    device.check()
    command = [sys.executable, "-m", module, *arguments]
    child = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if child.returncode:
        raise UsageError(f"the measured process ended with code {child.returncode}: see its output above")
    return child.stdout


def table_of(title: str, rows: list[Row]) -> Table:
    """The figures as a table for the console."""
    table = Table("figure", "measured", "target", "", box=None, pad_edge=False, title=title)
    for name, measured, target, met in rows:
        table.add_row(
            name, measured, target, "" if met is None else "[green]met[/green]" if met else "[red]missed[/red]"
        )
    return table
