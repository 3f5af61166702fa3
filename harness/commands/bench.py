"""`toggle-harness bench`: measurements, as ratios within one run where possible."""

import sys
from typing import Annotated

import typer
from rich.console import Console

from harness.bench.steps import Figures
from harness.commands import (
    bench_checks,
    bench_profile,
    bench_search,
    bench_threshold,
    bench_throughput,
    bench_toggle,
    bench_workload,
    options,
)
from harness.commands.measuring import Row, in_a_new_process, table_of
from harness.commands.options import DeviceChoice, captured, configuration
from harness.engine.device import Device

app = typer.Typer(help="Measure what the harness and the toggle cost.", rich_markup_mode=None)
app.command("toggle")(bench_toggle.command)
app.command("checks")(bench_checks.command)
app.command("search")(bench_search.command)
app.command("throughput")(bench_throughput.command)
app.command("threshold")(bench_threshold.command)
app.command("workload")(bench_workload.command)
app.command("profile")(bench_profile.command)


@app.callback()
def bench() -> None:
    """Measure what the harness and the toggle cost."""


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
    config = configuration(graphs=captured(graphs), worker=worker, dtype=dtype)
    resolved = device.resolve()
    written = in_a_new_process("harness.bench.steps", resolved, config.model_dump_json(), resolved.value, str(pairs))
    if as_json:
        sys.stdout.write(written + "\n")
    else:
        figures = Figures.model_validate_json(written)
        Console(highlight=False).print(table_of(f"bench steps on {resolved}", _rows(figures, resolved)))
    return 0


def _rows(figures: Figures, device: Device) -> list[Row]:
    low, high = figures.trace_overhead_spread
    overhead = f"{figures.trace_overhead:.3f} ({low:.3f} to {high:.3f}, {figures.pairs} pairs)"
    common: list[Row] = [
        ("reset", f"{figures.reset_ms:.1f} ms", "< 50 ms", figures.reset_ms < 50),
        ("traced / SGLang's own loop", overhead, "<= 1.1", figures.trace_overhead <= 1.1),
    ]
    times: list[Row] = [
        ("import SGLang", f"{figures.import_s:.1f} s", "", None),
        ("first token, cold process", f"{figures.first_token_s:.1f} s", "", None),
    ]
    if device is Device.CUDA:
        boot: list[Row] = [
            ("boot, SGLang imported", f"{figures.boot_s:.1f} s", "<= 12 s", figures.boot_s <= 12),
            ("first answer, cold process", f"{figures.first_answer_s:.1f} s", "", None),
            ("steps", f"{figures.steps_per_s:.1f} /s", "", None),
            ("peak memory (host)", f"{figures.peak_memory_gb:.2f} GB", "", None),
        ]
        return [*times, *boot, *common]
    emulated: list[Row] = [
        ("boot, SGLang imported", f"{figures.boot_s:.1f} s", "", None),
        ("first answer, cold process", f"{figures.first_answer_s:.1f} s", "< 45 s", figures.first_answer_s < 45),
        ("steps", f"{figures.steps_per_s:.1f} /s", ">= 20 /s", figures.steps_per_s >= 20),
        ("peak memory", f"{figures.peak_memory_gb:.2f} GB", "< 1.5 GB", figures.peak_memory_gb < 1.5),
    ]
    return [*times, *emulated, *common]
