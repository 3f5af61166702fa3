"""`toggle-harness bench profile`: where the time of a decode step goes, engine by engine."""

import itertools
import sys
from pathlib import Path
from typing import Annotated

import typer
from pydantic import TypeAdapter
from rich.console import Console
from rich.table import Table

from harness.bench.breakdown import Breakdown, Phase
from harness.bench.profile import STRETCH
from harness.bench.tasks import Profiled, Profiling, Wanted
from harness.commands import contests, options
from harness.commands.asked import Asked, asking
from harness.commands.options import numbers_of

OK, ENGINE_ENDED = 0, 1
PROFILES = TypeAdapter(list[Profiled])
KERNEL_NAME = 70
"""Characters of it that are printed."""


@asking
def command(
    asked: Asked,
    batch_size: Annotated[str, typer.Option(metavar="N,N,...", help="Requests that run together.")] = "64",
    threshold: Annotated[
        int | None, options.option("Of the toggled engines [1 less than the largest batch, at least 1].", min=1)
    ] = None,
    output: contests.OutputOption = Path("profile"),
) -> int:
    """Milliseconds of a decode step by phase, on the host and on the GPU, in SGLang's own loop.

    Writes profile.json as it goes and, for Perfetto, a trace of each engine. Exit code 1 if an engine ended.
    """
    sizes = numbers_of(batch_size, "--batch-size", least=1)
    resolved = asked.device.resolve()
    tokens = STRETCH.tokens_needed(asked.config(resolved))
    contest = asked.contest(
        resolved,
        threshold=max(1, max(sizes) - 1) if threshold is None else threshold,
        new_tokens=tokens,
        running=max(sizes),
        longest=tokens,
        crossing=False,
    )
    folder, console = contests.folder(output), contests.console(asked.as_json)
    console.print(contest.title, soft_wrap=True)
    profiles: list[Profiled] = []
    with contests.started(contest, resolved, folder) as running:
        running.boot()
        for size, name in itertools.product(sizes, running.names):
            trace = folder.absolute() / f"trace-{name}-{size}.json.gz"
            wanted = Profiling(batch_size=size, prompt_tokens=asked.prompt_tokens, trace=trace)
            said = running.ask(name, Wanted(profiling=wanted))
            if said is not None and said.profiled is not None:
                profiles.append(said.profiled.model_copy(update={"engine": name}))
                contests.write(folder / "profile.json", PROFILES.dump_json(profiles, indent=1) + b"\n")
                show(console, profiles[-1])
    console.print(f"results: {folder}", soft_wrap=True)
    if asked.as_json:
        sys.stdout.write(PROFILES.dump_json(profiles).decode() + "\n")
    return ENGINE_ENDED if running.failures else OK


def show(console: Console, profiled: Profiled) -> None:
    """One engine at one batch size."""
    found = profiled.breakdown
    console.print(
        f"\n{profiled.engine}, batch of {profiled.batch_size}: step {profiled.step_ms:.3f} ms; "
        f"traced {found.step_ms:.3f} ms, the GPU busy {found.busy_ms:.3f} ms, "
        f"at {profiled.kv_tokens[0]:.0f} to {profiled.kv_tokens[1]:.0f} tokens a request",
        soft_wrap=True,
    )
    console.print(phases_of(found))
    if found.kernels:
        console.print(kernels_of(found))


def phases_of(found: Breakdown) -> Table:
    """Each phase's part of a step, and their sum."""
    table = Table("phase", "host", "of it waiting", "GPU", "kernels", box=None, pad_edge=False)
    total = Phase(
        **{field: sum(getattr(phase, field) for phase in found.phases.values()) for field in Phase.model_fields}
    )
    for phase_name, phase in {**found.phases, "all": total}.items():
        times = (f"{ms:.3f} ms" for ms in (phase.host_ms, phase.waiting_ms, phase.gpu_ms))
        table.add_row(phase_name, *times, f"{phase.kernels:.1f}")
    return table


def kernels_of(found: Breakdown) -> Table:
    """Those with the most time in a step."""
    table = Table("kernel", "a step", "GPU", box=None, pad_edge=False)
    for kernel in found.kernels:
        table.add_row(kernel.name[:KERNEL_NAME], f"{kernel.count:.1f}", f"{kernel.gpu_ms:.3f} ms")
    return table
