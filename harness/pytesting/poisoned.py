"""A process whose GPU can't be used any more: after a device-side fault every CUDA call raises that fault again."""

import sys
from pathlib import Path

import pytest


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


def write(file: Path, fault: str, report: pytest.TestReport) -> None:
    """Leave the report to the controller: this process is about to end."""
    file.write_text(f"{fault}\n{report.longreprtext}")


def read(file: Path) -> tuple[str, str]:
    """The fault and the report that a worker left; both empty where it left none."""
    fault, _, report = file.read_text().partition("\n") if file.exists() else ("", "", "")
    return fault, report
