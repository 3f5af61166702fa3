"""`toggle-harness bench toggle`: boot and plain step of a toggled engine, against an always-spec and a plain one."""

import statistics
import sys
from typing import Annotated

import typer
from rich.console import Console

from harness.bench.contest import captured_up_to
from harness.bench.toggle import Figures
from harness.commands import options
from harness.commands.measuring import Row, in_a_new_process, spread, table_of
from harness.commands.options import DeviceChoice, configuration
from harness.configuration import Strategy, Toggle
from harness.errors import UsageError
from harness.models import shape as shape_of

CONTEXT = 512
BOOT_LIMIT, STEP_LIMIT = 1.5, 1.15
LEAST_BATCH = 2


def command(
    device: options.DeviceOption = DeviceChoice.AUTO,
    worker: options.WorkerOption = None,
    batch_size: Annotated[int, typer.Option(min=LEAST_BATCH, help="Requests that run together, in plain steps.")] = 16,
    threshold: Annotated[int | None, options.option("Of the toggle [1 less than the batch size].", min=1)] = None,
    strategy: Annotated[Strategy, typer.Option(help="Of the toggle.")] = "warm",
    dtype: options.DtypeOption = None,
    shape: Annotated[str | None, options.option("A named shape with dummy weights, e.g. llama-3.1-8b.")] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Boots of each engine.")] = 3,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> int:
    """What the toggle costs: boot against an always-spec engine's, plain step against a plain engine's, in one run."""
    threshold = batch_size - 1 if threshold is None else threshold
    if threshold >= batch_size:
        raise UsageError(f"--threshold {threshold}: a batch of {batch_size} would never step plainly")
    config = configuration(
        worker=worker,
        dtype=dtype,
        models=shape_of(shape) if shape else None,
        graphs=captured_up_to(batch_size),
        max_running_requests=batch_size,
        kv_tokens=batch_size * CONTEXT,
        context_length=CONTEXT,
        toggle=Toggle(threshold=threshold, strategy=strategy),
    )
    resolved = device.resolve()
    arguments = (config.model_dump_json(), resolved.value, str(batch_size), str(rounds))
    written = in_a_new_process("harness.bench.toggle", resolved, *arguments)
    if as_json:
        sys.stdout.write(written + "\n")
    else:
        pair = shape or "the built-in pair"
        what = f"bench toggle on {resolved}: worker {config.worker}, strategy {strategy}, {pair}, {config.dtype}"
        Console(highlight=False).print(table_of(what, _rows(Figures.model_validate_json(written))))
    return 0


def _rows(figures: Figures) -> list[Row]:
    boot = figures.ratios("boot_s", "toggled", "always-spec")
    step = figures.ratios("step_ms", "toggled", "plain")
    return [
        *(
            (f"boot, {name}", f"{statistics.median(s.boot_s for s in samples):.1f} s", "", None)
            for name, samples in figures.samples.items()
        ),
        *(
            (
                f"step at {figures.batch_size}, {name}",
                f"{statistics.median(s.step_ms for s in samples):.3f} ms",
                "",
                None,
            )
            for name, samples in figures.samples.items()
        ),
        (
            "boot, toggled / always-spec",
            spread(boot, "rounds"),
            f"<= {BOOT_LIMIT}",
            statistics.median(boot) <= BOOT_LIMIT,
        ),
        (
            "plain step, toggled / plain",
            spread(step, "rounds"),
            f"<= {STEP_LIMIT}",
            statistics.median(step) <= STEP_LIMIT,
        ),
    ]
