"""`toggle-harness bench threshold`: the threshold that measured curves speak for."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from harness.bench.contest import ALWAYS
from harness.bench.threshold import SURE_PERCENT, Threshold, estimate
from harness.bench.throughput import Throughput
from harness.errors import UsageError
from harness.toggle import settings


def command(
    curves: Annotated[Path, typer.Argument(metavar="CURVES", help="throughput.json, as bench throughput wrote it.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the estimate as JSON.")] = False,
) -> int:
    """The best threshold for the model, GPU and acceptance of these curves, as the toggle takes it."""
    try:
        measured = Throughput.from_json(curves.read_text())
        found = estimate(measured)
    except OSError as error:
        raise UsageError(f"{curves}: {error.strerror}") from None
    except (UsageError, UnicodeDecodeError) as error:
        raise UsageError(f"{curves}: {error}") from None
    if as_json:
        sys.stdout.write(found.model_dump_json() + "\n")
        return 0
    console = Console(highlight=False)
    console.print(measured.contest.title, soft_wrap=True)
    console.print(_advice(found), soft_wrap=True)
    return 0


def _advice(found: Threshold) -> str:
    match found.verdict:
        case "never":
            said = f"Speculation never pays here: {found.against} is quicker than {ALWAYS} at every batch size."
        case "always":
            said = f"Speculation pays up to the largest concurrency measured, {found.largest}: no threshold is needed."
        case "crosses":
            said = f"{settings.THRESHOLD}={found.threshold}"
    if found.rounds == 1:
        return f"{said}\nFrom one round: how sure that is can't be said."
    spread = f"{SURE_PERCENT}% of resampled rounds give {found.low} to {found.high}"
    return f"{said}\n{spread} ({found.rounds} rounds, {ALWAYS} against {found.against})."
