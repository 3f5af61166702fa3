"""What the commands of contests share: engines that are started, options of rounds, where the results go."""

import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from harness.bench.contest import Contest
from harness.bench.engines import Engines, InProcess, Measured
from harness.commands import options
from harness.configuration import EngineConfig
from harness.engine.device import Device
from harness.errors import UsageError

RoundsOption = Annotated[int, typer.Option(min=1, help="Measurements of each engine at each point.")]
MinutesOption = Annotated[
    float | None, options.option("Begin nothing more after so long, boots included [no limit].", min=0.1)
]
OutputOption = Annotated[Path, typer.Option(help="Folder for the results; made if need be.")]
ThresholdOption = Annotated[int | None, options.option("Of the toggled engines [v1: 16, v2: 32].", min=1)]

WIDTH = 120
"""Columns of a table that goes into a file."""


def folder(output: Path) -> Path:
    """The folder of --output, which can be written; raises UsageError."""
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--output {output}: {error.strerror}") from None
    return output


def started(contest: Contest, device: Device, logs: Path) -> Engines:
    """Its engines, importing SGLang or waiting to be started as servers."""
    return Engines(
        {name: partial(_engine, name, config, contest, device, logs) for name, config in contest.configs().items()}
    )


def _engine(name: str, config: EngineConfig, contest: Contest, device: Device, logs: Path) -> Measured:
    if not contest.server:
        return InProcess(config, device, contest.accept_length)
    from harness.bench.served import Served  # a release's room imports torch, which takes seconds

    return Served(config, device, contest.accept_length, logs / f"server-{name}.log")


def console(as_json: bool) -> Console:
    """For lines and tables, wide enough for them where they go into a file; beside JSON, on standard error."""
    return Console(highlight=False, stderr=as_json, width=None if sys.stdout.isatty() else WIDTH)


def write(path: Path, content: str | bytes) -> None:
    """In one go: a run that is cut short leaves the last whole file."""
    beside = path.with_name(f".{path.name}")
    beside.write_bytes(content.encode() if isinstance(content, str) else content)
    beside.replace(path)
