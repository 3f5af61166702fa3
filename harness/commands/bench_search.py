"""`toggle-harness bench search`: programs a second, and what the parent adds."""

from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from harness.commands import children, options
from harness.commands.measuring import Row, table_of
from harness.commands.options import DeviceChoice, configuration
from harness.configuration import Toggle, Worker
from harness.engine.device import Device

if TYPE_CHECKING:
    from harness.bench.search import Figures

LEAST_PER_SECOND = {Device.CPU: 1.5, Device.CUDA: 12.0}
MOST_OVERHEAD = 0.10
LEAST_OF_TWO_GPUS = 1.8


def command(
    device: options.DeviceOption = DeviceChoice.AUTO,
    worker: Annotated[Worker, typer.Option(help="v1 or v2.")] = Worker.V1,
    examples: Annotated[int, typer.Option(min=1, help="Programs of each engine.")] = 50,
    workers: options.WorkersOption = "auto",
) -> int:
    """Programs a second on warm engines, the fixed toggle under test; with two GPUs also on one of them."""
    from harness.bench.search import measure

    resolved = device.resolve()
    resolved.check()
    config = configuration(worker=worker, toggle=Toggle(threshold=2), max_running_requests=8)
    gpus = children.identifiers(resolved)
    one = measure(config, resolved, gpus[:1], children.at_once(workers, resolved, 1), examples)
    rows = _rows(one, resolved)
    if len(gpus) > 1:
        two = measure(config, resolved, gpus[:2], 2 * one.threads, examples)
        ratio = two.programs_per_second / one.programs_per_second
        rows.append(("two GPUs / one", f"{ratio:.2f}", f">= {LEAST_OF_TWO_GPUS}", ratio >= LEAST_OF_TWO_GPUS))
    Console(highlight=False).print(table_of(f"bench search on {resolved}: worker {worker}, all checks", rows))
    return 0


def _rows(figures: "Figures", device: Device) -> list[Row]:
    rate, least, overhead = figures.programs_per_second, LEAST_PER_SECOND[device], figures.parent_overhead
    return [
        ("engines at once", str(figures.threads), "", None),
        ("programs", f"{figures.programs}, {figures.steps_per_program:.1f} steps each", "", None),
        ("programs a second", f"{rate:.2f}", f">= {least:g}", rate >= least),
        ("steps a second", f"{figures.steps / figures.seconds:.1f}", "", None),
        ("parent / engines", f"{overhead:.3f}", f"<= {MOST_OVERHEAD:g}", overhead <= MOST_OVERHEAD),
    ]
