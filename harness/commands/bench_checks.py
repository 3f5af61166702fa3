"""`toggle-harness bench checks`: what the checks cost a step."""

import statistics
import sys
from typing import Annotated

import typer
from rich.console import Console

from harness.bench.checks import LOOKING, Figures
from harness.checks import selected
from harness.commands import options
from harness.commands.measuring import Row, in_a_new_process, spread, table_of
from harness.commands.options import DeviceChoice, captured, configuration
from harness.configuration import Toggle
from harness.engine.device import Device

LIMITS = {Device.CPU: 1.25, Device.CUDA: 1.5}


def command(
    device: options.DeviceOption = DeviceChoice.AUTO,
    worker: options.WorkerOption = None,
    graphs: options.GraphsOption = None,
    dtype: options.DtypeOption = None,
    threshold: Annotated[int, typer.Option(min=1, help="Of the toggle.")] = 5,
    checks: options.ChecksOption = "all",
    pairs: Annotated[int, typer.Option(min=1, help="Paired runs of the main job, with checks and without.")] = 15,
    each: Annotated[
        bool, typer.Option("--each", help="Also with each family alone, and with none: looking on.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> int:
    """A run of the toggled main job with checks, against one without, in pairs."""
    selected(checks)
    config = configuration(worker=worker, graphs=captured(graphs), dtype=dtype, toggle=Toggle(threshold=threshold))
    resolved = device.resolve()
    arguments = (config.model_dump_json(), resolved.value, str(pairs), checks, "each" if each else "")
    written = in_a_new_process("harness.bench.checks", resolved, *arguments)
    if as_json:
        sys.stdout.write(written + "\n")
    else:
        what = f"bench checks on {resolved}: worker {config.worker}, {config.dtype}, checks {checks}"
        Console(highlight=False).print(table_of(what, _rows(Figures.model_validate_json(written), LIMITS[resolved])))
    return 0


def _rows(figures: Figures, limit: float) -> list[Row]:
    ratio = statistics.median(figures.ratios)
    skipped = ", ".join(f"{name} {count}" for name, count in figures.skipped.items()) or "none"
    return [
        ("step without checks", f"{statistics.median(figures.bare_step_ms):.2f} ms", "", None),
        *((_alone(name), spread(ratios, "pairs"), "", None) for name, ratios in figures.each.items()),
        ("with checks / without", spread(figures.ratios, "pairs"), f"<= {limit}", ratio <= limit),
        ("skipped in a run", skipped, "", None),
    ]


def _alone(name: str) -> str:
    return name if name == LOOKING else f"{name} alone"
