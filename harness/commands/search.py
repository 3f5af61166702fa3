"""`toggle-harness search`: random programs until one fails, and the shortest that does."""

from pathlib import Path
from random import SystemRandom
from typing import Annotated

import typer
from rich.console import Console

from harness.commands import children, options
from harness.commands.options import DeviceChoice
from harness.commands.watching import Watching
from harness.configuration import DEFAULT_SETTING, Worker
from harness.errors import UsageError
from harness.folders import make_writable
from harness.isolation.child import Limits
from harness.patches.given import patch_of
from harness.patches.stack import UNCHANGED, title
from harness.patches.workers import strategy_of
from harness.report import summary
from harness.search.finding import Finding
from harness.search.progress import Progress

NOTHING, FOUND, UNPROVEN, INTERRUPTED = 0, 1, 3, 130
EXAMPLES = 200
OUTPUT = Path("findings")


def command(
    patch: options.PatchOption = None,
    threshold_setting: options.ThresholdSettingOption = DEFAULT_SETTING,
    examples: Annotated[int | None, options.option(f"Programs to try [{EXAMPLES}].", min=1)] = None,
    minutes: Annotated[float | None, options.option("Or the time to search for.", min=0.01)] = None,
    workers: options.WorkersOption = "auto",
    seed: Annotated[int | None, options.option("Repeats a search [a new one].", min=0)] = None,
    device: options.DeviceOption = DeviceChoice.AUTO,
    worker: Annotated[Worker | None, options.option("Of the two only this one [those that the patch is for].")] = None,
    strategy: options.StrategyOption = None,
    output: Annotated[Path, typer.Option(help="Folder that a reproducer's folder is written to.")] = OUTPUT,
    database: Annotated[
        str, typer.Option(metavar="FOLDER|redis://...", help="Hypothesis' example database.")
    ] = ".hypothesis/examples",
    shrink_seconds: Annotated[float, typer.Option(min=0, help="Time for shrinking.")] = 60.0,
    hang_seconds: Annotated[
        float, typer.Option(min=1, help="A step that takes longer has hung, unless kernels are compiled meanwhile.")
    ] = 120.0,
) -> int:
    """Search for a program that a patch fails, shrink it, and write it down as a reproducer.

    Exit code 0 if nothing was found, 1 if something was (its folder is the last line), 2 for wrong usage, 3 if no
    program crossed the threshold, so that nothing is proven.
    """
    if examples is not None and minutes is not None:
        raise UsageError("--examples or --minutes, not both")
    tested = patch_of(patch or [UNCHANGED])
    resolved = device.resolve()
    resolved.check()
    make_writable("--output", output)
    from harness.search import known
    from harness.search.grid import grid
    from harness.search.search import Plan, Search

    setting, strategy = options.checked_setting(threshold_setting), strategy or strategy_of(tested)
    configs = grid(options.worker_of(tested, worker), tested, setting, strategy)
    gpus = children.identifiers(resolved)
    plan = Plan(
        grid=configs,
        device=resolved,
        seed=SystemRandom().randrange(2**32) if seed is None else seed,
        examples=EXAMPLES if examples is None and minutes is None else examples,
        seconds=None if minutes is None else minutes * 60,
        threads=children.at_once(workers, resolved, len(gpus)),
        gpus=gpus,
        shrink_seconds=shrink_seconds,
        limits=Limits(hang_seconds=hang_seconds),
        database=known.open_database(database),
    )
    console = Console(highlight=False)
    console.print(
        f"patch {title(tested)} on {resolved}: {len(configs)} configurations, {plan.threads} programs at once, "
        f"--seed {plan.seed}",
        soft_wrap=True,
    )
    search = Search(plan)
    with Watching(Console(stderr=True, highlight=False)) as watching:
        finding = search.run(watching.show)
    if finding is not None and search.error is not None:
        console.print(f"[red]cut short[/red]: {search.error}", soft_wrap=True)
    return _conclude(search.progress, finding, search.interrupted, output, console)


def _conclude(progress: Progress, finding: Finding | None, interrupted: bool, output: Path, console: Console) -> int:
    """Say what was reached and found, and write a reproducer; returns the exit code."""
    console.print(summary.reached(progress))
    for said in summary.totals(progress):
        console.print(said, soft_wrap=True, markup=False)
    if finding is not None:
        return _write_down(finding, output, console)
    if interrupted:
        console.print("interrupted; nothing found until then")
        return INTERRUPTED
    if not progress.crossing:
        console.print("[red]nothing proven[/red]: no program crossed the threshold")
        return UNPROVEN
    console.print("[green]nothing found[/green]")
    return NOTHING


def _write_down(finding: Finding, output: Path, console: Console) -> int:
    from harness.report.reproducer import write

    console.print(f"[red]found[/red]: {finding.ran.outcome}", soft_wrap=True)
    same, runs = finding.rate
    if runs:
        console.print(f"{same} of {runs} cold runs the same" + (": flaky" if finding.flaky else ""))
    else:
        console.print("stopped before it was run again from cold")
    try:
        folder = write(finding, output)
    except UsageError as error:  # a full disk mustn't take the finding along
        console.print(finding.program.to_json(indent=None), soft_wrap=True, markup=False)
        console.print(f"the program is above, since its folder can't be written: {error}", soft_wrap=True, markup=False)
        return FOUND
    console.print(str(folder), soft_wrap=True, markup=False)
    return FOUND
