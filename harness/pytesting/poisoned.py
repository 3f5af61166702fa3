"""A process whose GPU can't be used any more: after a device-side fault every CUDA call raises that fault again."""

import json
import sys
from pathlib import Path
from typing import NamedTuple

import pytest


class Left(NamedTuple):
    """What a worker leaves to the controller before it ends itself."""

    fault: str
    """In one line."""
    failure: str
    """Of the test, as it would have been reported."""
    sections: list[tuple[str, str]]
    """Captured output, a title each: a kernel's failed assertion is written there."""


def fault() -> str:
    """The fault, in one line; empty where the GPU still works, or this process has none.

    `cudaDeviceSynchronize` returns such a fault until the process ends (CUDA Runtime API, Error Handling).
    """
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return ""
    try:
        torch.cuda.synchronize()
    except RuntimeError as error:
        return str(error).partition("\n")[0]
    return ""


def leave(file: Path, fault: str, report: pytest.TestReport) -> None:
    """Write it down: this process is about to end."""
    file.write_text(json.dumps(Left(fault, report.longreprtext, report.sections)))


def left(file: Path) -> Left | None:
    """What a worker left there; None where it ended otherwise."""
    if not file.exists():
        return None
    fault, failure, sections = json.loads(file.read_text())
    return Left(fault, failure, [(title, text) for title, text in sections])
