"""`toggle-harness bench`: measurements, as ratios within one run where possible."""

import subprocess
import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from harness.bench.steps import Figures
from harness.commands import options
from harness.commands.options import DeviceChoice, configuration
from harness.engine.device import Device
from harness.errors import UsageError

app = typer.Typer(help="Measure what the harness costs.", rich_markup_mode=None)

Target = tuple[str, str, str, bool | None]


@app.callback()
def bench() -> None:
    """Measure what the harness costs."""


@app.command()
def steps(
    device: options.DeviceOption = DeviceChoice.AUTO,
    worker: options.WorkerOption = None,
    graphs: options.GraphsOption = None,
    dtype: options.DtypeOption = None,
    pairs: Annotated[int, typer.Option(min=1, help="Paired runs of the main job, traced and not.")] = 15,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> int:
    """Boot, first answer, steps per second and the cost of a trace, on the main job from a cold process."""
    config = configuration(graphs, None, None, worker=worker, dtype=dtype)
    resolved = device.resolve()
    resolved.check()
    command = [sys.executable, "-m", "harness.bench.steps", config.model_dump_json(), resolved.value, str(pairs)]
    child = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if child.returncode:
        raise UsageError(f"the measured process ended with code {child.returncode}: see its output above")
    figures = Figures.model_validate_json(child.stdout)
    if as_json:
        sys.stdout.write(child.stdout + "\n")
    else:
        Console(highlight=False).print(_table(figures, resolved))
    return 0


def _table(figures: Figures, device: Device) -> Table:
    table = Table("figure", "measured", "target", "", box=None, pad_edge=False, title=f"bench steps on {device}")
    for name, measured, target, met in _rows(figures, device):
        table.add_row(
            name, measured, target, "" if met is None else "[green]met[/green]" if met else "[red]missed[/red]"
        )
    return table


def _rows(figures: Figures, device: Device) -> list[Target]:
    low, high = figures.trace_overhead_spread
    overhead = f"{figures.trace_overhead:.3f} ({low:.3f} to {high:.3f}, {figures.pairs} pairs)"
    common: list[Target] = [
        ("reset", f"{figures.reset_ms:.1f} ms", "< 50 ms", figures.reset_ms < 50),
        ("traced / SGLang's own loop", overhead, "<= 1.1", figures.trace_overhead <= 1.1),
    ]
    times: list[Target] = [
        ("import SGLang", f"{figures.import_s:.1f} s", "", None),
        ("first token, cold process", f"{figures.first_token_s:.1f} s", "", None),
    ]
    if device is Device.CUDA:
        boot: list[Target] = [
            ("boot, SGLang imported", f"{figures.boot_s:.1f} s", "<= 12 s", figures.boot_s <= 12),
            ("first answer, cold process", f"{figures.first_answer_s:.1f} s", "", None),
            ("steps", f"{figures.steps_per_s:.1f} /s", "", None),
            ("peak memory (host)", f"{figures.peak_memory_gb:.2f} GB", "", None),
        ]
        return [*times, *boot, *common]
    emulated: list[Target] = [
        ("boot, SGLang imported", f"{figures.boot_s:.1f} s", "", None),
        ("first answer, cold process", f"{figures.first_answer_s:.1f} s", "< 45 s", figures.first_answer_s < 45),
        ("steps", f"{figures.steps_per_s:.1f} /s", ">= 20 /s", figures.steps_per_s >= 20),
        ("peak memory", f"{figures.peak_memory_gb:.2f} GB", "< 1.5 GB", figures.peak_memory_gb < 1.5),
    ]
    return [*times, *emulated, *common]
