"""What of the harness this machine can run: packages, kernels, GPUs, plugins."""

import importlib
import importlib.metadata
import os
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

import psutil

from harness.configuration import EngineConfig
from harness.errors import RefusedConfiguration
from harness.models import models_of

PINNED = {"sglang": "0.5.12.post1", "torch": "2.11.0", "triton": "3.6.0", "kernels": "0.14.1"}
"""Releases that the harness was made for; SGLang breaks with later ones of `kernels`, which it leaves unpinned."""

NEEDED = ("greenlet", "nvidia-ml-py", "pydantic", "rich", "typer")
PLUGIN_GROUP = "sglang.srt.plugins"
PEAK_MEMORY_GB = 1.5


class Severity(Enum):
    """How a finding bears on the main job."""

    OK = "ok"
    NOTE = "note"
    """The main job runs without it."""
    BAD = "bad"
    """The main job can't run."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at."""

    subject: str
    severity: Severity
    detail: str


def examine() -> list[Finding]:
    """Look at everything; quick, imports neither SGLang nor torch's CUDA."""
    examinations: tuple[Callable[[], list[Finding]], ...] = (
        _python,
        _packages,
        _machine,
        _gpus,
        _models,
        _plugins,
    )
    return [finding for look in examinations for finding in look()]


def _python() -> list[Finding]:
    version = platform.python_version()
    fits = (3, 11) <= sys.version_info[:2] <= (3, 12)
    detail = version if fits else f"{version}: use 3.11 or 3.12"
    return [Finding("Python", Severity.OK if fits else Severity.BAD, detail)]


def _packages() -> list[Finding]:
    return [_package(name, PINNED.get(name)) for name in (*PINNED, *NEEDED)]


def _package(name: str, pinned: str | None) -> Finding:
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return Finding(name, Severity.BAD, f"not installed: pip install {name}{f'=={pinned}' if pinned else ''}")
    if pinned and version.partition("+")[0] != pinned:
        return Finding(name, Severity.BAD, f"{version}, but the harness is made for {pinned}")
    return Finding(name, Severity.OK, version)


def _machine() -> list[Finding]:
    free_gb = psutil.virtual_memory().available / 1e9
    detail = f"{os.cpu_count()} cores, {free_gb:.1f} GB of memory free"
    if free_gb < PEAK_MEMORY_GB:
        return [Finding("machine", Severity.BAD, f"{detail}: one engine needs {PEAK_MEMORY_GB} GB")]
    return [Finding("machine", Severity.OK, detail)]


def _gpus() -> list[Finding]:
    try:
        pynvml = importlib.import_module("pynvml")
    except ModuleNotFoundError:
        return [Finding("GPU", Severity.NOTE, "can't tell without nvidia-ml-py")]
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return [Finding("GPU", Severity.NOTE, f"none ({error}): programs run on the emulated device, --device cpu")]
    try:
        handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())]
        gpus = [Finding(f"GPU {index}", Severity.OK, _gpu(pynvml, handle)) for index, handle in enumerate(handles)]
        return [Finding("driver", Severity.OK, str(pynvml.nvmlSystemGetDriverVersion())), *gpus, *_kernels_for_gpu()]
    finally:
        pynvml.nvmlShutdown()


def _gpu(pynvml: object, handle: object) -> str:
    memory = pynvml.nvmlDeviceGetMemoryInfo(handle)  # type: ignore[attr-defined]
    name = pynvml.nvmlDeviceGetName(handle)  # type: ignore[attr-defined]
    others = len(pynvml.nvmlDeviceGetComputeRunningProcesses(handle))  # type: ignore[attr-defined]
    return f"{name}, {memory.free / 1e9:.0f} of {memory.total / 1e9:.0f} GB free, {others} processes on it"


def _kernels_for_gpu() -> list[Finding]:
    """A GPU is what `--device auto` takes, and there SGLang needs its compiled kernels."""
    return [_package("sglang-kernel", None)]


def _models() -> list[Finding]:
    try:
        pair = models_of(EngineConfig())
    except RefusedConfiguration as error:
        return [Finding("model pair", Severity.BAD, str(error))]
    files = [file for folder in (pair.target, pair.draft) if folder for file in folder.glob("*.safetensors")]
    return [Finding("model pair", Severity.OK, f"built in, {sum(file.stat().st_size for file in files) / 1e6:.2f} MB")]


def _plugins() -> list[Finding]:
    found = importlib.metadata.entry_points(group=PLUGIN_GROUP)
    names = ", ".join(entry.name for entry in found)
    return [Finding("SGLang plugins", Severity.OK if names else Severity.NOTE, names or "none installed")]
