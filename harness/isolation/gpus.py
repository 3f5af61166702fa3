"""The GPUs of this machine as NVML sees them: which of them an engine can have, and why not the others.

Never imports torch: CUDA_VISIBLE_DEVICES has to be set before torch looks at it.
"""

import importlib
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from filelock import BaseFileLock, FileLock, Timeout

VISIBLE = "CUDA_VISIBLE_DEVICES"
GIB = 1 << 30
NEEDED_BYTES = 8 * GIB
"""Free memory below which a GPU is left out: CUDA's context, workspaces, two sets of graphs, and small models."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU, as it was when it was looked at."""

    identifier: str
    """Its UUID, which CUDA_VISIBLE_DEVICES takes: NVML numbers by PCI bus, CUDA by speed unless told otherwise."""
    number: int
    """NVML's, and nvidia-smi's."""
    name: str = ""
    free_bytes: int = 0
    total_bytes: int = 0
    foreign: tuple[int, ...] = ()
    """Compute processes that aren't this process or its descendants. A container may not see those of others."""
    why_not: str | None = None
    """Why an engine can't have it; None where it can."""

    def __str__(self) -> str:
        return f"GPU {self.number}, {self.name}, {_gib(self.free_bytes)} of {_gib(self.total_bytes)} GiB free"


class NoNvml(Exception):
    """NVML can't be asked, most likely for want of a driver; the message is what it says."""


def survey() -> list[Gpu]:
    """The GPUs that CUDA_VISIBLE_DEVICES leaves visible, in its order; none without a driver.

    An index in it counts as nvidia-smi does, which is CUDA's order where the GPUs are alike.
    """
    try:
        with _nvml() as nvml:
            own = _own_processes()
            found = [_look_at(nvml, number, own) for number in range(nvml.nvmlDeviceGetCount())]
    except NoNvml:
        return []
    setting = os.environ.get(VISIBLE)
    return found if setting is None else _named_in(setting, found)


def usable() -> list[Gpu]:
    """Those of the survey that an engine can have."""
    return [gpu for gpu in survey() if gpu.why_not is None]


def on_gpu(identifier: str | None) -> dict[str, str]:
    """Variables for a process that shall see this GPU alone; of None, all that its parent sees."""
    return {} if identifier is None else {VISIBLE: identifier}


def why_none() -> str:
    """Why a survey finds nothing."""
    try:
        with _nvml() as nvml:
            count = nvml.nvmlDeviceGetCount()
    except NoNvml as error:
        return f"no NVIDIA GPU ({error})"
    return f"{VISIBLE}={os.environ.get(VISIBLE)!r} leaves none of {count} GPUs" if count else "no NVIDIA GPU"


def claim(gpu: Gpu) -> BaseFileLock | None:
    """Keep a GPU from this user's other runs, until released or this process ends; None where one of them has it.

    Another run's engines may not have booted yet, so NVML doesn't show that they will.
    """
    folder = Path(tempfile.gettempdir()) / f"sglang-toggle-harness-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    lock = FileLock(folder / f"{gpu.identifier}.lock")
    try:
        lock.acquire(blocking=False)
    except Timeout:
        return None
    return lock


@contextmanager
def _nvml() -> Iterator[Any]:
    try:
        nvml = importlib.import_module("pynvml")
    except ModuleNotFoundError:
        raise NoNvml("can't tell without nvidia-ml-py") from None
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        raise NoNvml(str(error)) from None
    try:
        yield nvml
    finally:
        nvml.nvmlShutdown()


def _own_processes() -> set[int]:
    return {os.getpid()} | {child.pid for child in psutil.Process().children(recursive=True)}


def _look_at(nvml: Any, number: int, own: set[int]) -> Gpu:
    try:
        return _read(nvml, number, own)
    except nvml.NVMLError as error:  # fallen off the bus, or in recovery: the others can still be had
        return Gpu(identifier="", number=number, why_not=f"GPU {number} can't be read: {error}")


def _read(nvml: Any, number: int, own: set[int]) -> Gpu:
    handle = nvml.nvmlDeviceGetHandleByIndex(number)
    memory = nvml.nvmlDeviceGetMemoryInfo(handle)
    processes = _where_supported(nvml, nvml.nvmlDeviceGetComputeRunningProcesses, handle) or []
    foreign = tuple(sorted({process.pid for process in processes} - own))
    mig_mode = _where_supported(nvml, nvml.nvmlDeviceGetMigMode, handle)
    divided = mig_mode is not None and mig_mode[0] == nvml.NVML_DEVICE_MIG_ENABLE
    return Gpu(
        identifier=str(nvml.nvmlDeviceGetUUID(handle)),
        number=number,
        name=str(nvml.nvmlDeviceGetName(handle)),
        free_bytes=memory.free,
        total_bytes=memory.total,
        foreign=foreign,
        why_not=_why_not(number, memory.free, foreign, divided),
    )


def _where_supported(nvml: Any, query: Callable[[Any], Any], handle: Any) -> Any:
    """What a query answers; None where this GPU or driver doesn't have it."""
    try:
        return query(handle)
    except nvml.NVMLError_NotSupported:
        return None


def _why_not(number: int, free_bytes: int, foreign: tuple[int, ...], divided: bool) -> str | None:
    reasons = []
    if divided:
        reasons.append("is in MIG mode, and the harness takes whole GPUs only")
    if foreign:
        plural = "es" if len(foreign) > 1 else ""
        reasons.append(f"is in use by process{plural} {', '.join(map(str, foreign))}")
    if free_bytes < NEEDED_BYTES:
        reasons.append(f"has {_gib(free_bytes)} GiB free, needs {NEEDED_BYTES // GIB}")
    return f"GPU {number} {' and '.join(reasons)}" if reasons else None


def _named_in(setting: str, gpus: list[Gpu]) -> list[Gpu]:
    """What CUDA makes of CUDA_VISIBLE_DEVICES: the first unknown entry ends the list, a repeated GPU empties it."""
    chosen: list[Gpu] = []
    for entry in setting.split(","):
        gpu = _named(entry.strip(), gpus)
        if gpu is None:
            break
        if gpu in chosen:
            return []
        chosen.append(gpu)
    return chosen


def _named(entry: str, gpus: list[Gpu]) -> Gpu | None:
    if entry.startswith("MIG-"):
        why_not = f"{entry} is a MIG instance, and the harness takes whole GPUs only"
        return Gpu(identifier=entry, number=-1, why_not=why_not)
    if entry.startswith("GPU-"):  # a prefix will do where one GPU alone has it
        fitting = [gpu for gpu in gpus if gpu.identifier.startswith(entry)]
        return fitting[0] if len(fitting) == 1 else None
    return gpus[int(entry)] if entry.isdecimal() and int(entry) < len(gpus) else None


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / GIB:.1f}"
