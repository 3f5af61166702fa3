"""NVML without a GPU: what tests import as `pynvml`. FAKE_NVML in the environment describes the GPUs, as JSON.

Imports nothing of the project: a copy named `pynvml.py` serves tests that start processes.
"""

import json
import os
from types import SimpleNamespace
from typing import Any

NVML_DEVICE_MIG_ENABLE = 1


class NVMLError(Exception):
    pass


class NVMLError_NotSupported(NVMLError):
    pass


def nvmlInit() -> None:
    if "FAKE_NVML" not in os.environ:
        raise NVMLError("NVML Shared Library Not Found")


def nvmlShutdown() -> None:
    pass


def _gpus() -> list[dict[str, Any]]:
    described: list[dict[str, Any]] = json.loads(os.environ["FAKE_NVML"])
    return described


def nvmlDeviceGetCount() -> int:
    return len(_gpus())


def nvmlDeviceGetHandleByIndex(number: int) -> dict[str, Any]:
    gpu = _gpus()[number]
    if "lost" in gpu:
        raise NVMLError("GPU is lost")
    return gpu


def nvmlDeviceGetUUID(gpu: dict[str, Any]) -> str:
    return str(gpu["uuid"])


def nvmlDeviceGetName(gpu: dict[str, Any]) -> str:
    return "NVIDIA Fake"


def nvmlDeviceGetMemoryInfo(gpu: dict[str, Any]) -> SimpleNamespace:
    return SimpleNamespace(free=int(gpu.get("free_gib", 79) * (1 << 30)), total=80 << 30)


def nvmlDeviceGetComputeRunningProcesses(gpu: dict[str, Any]) -> list[SimpleNamespace]:
    return [SimpleNamespace(pid=pid) for pid in gpu.get("pids", [])]


def nvmlDeviceGetMigMode(gpu: dict[str, Any]) -> list[int]:
    if "mig" not in gpu:
        raise NVMLError_NotSupported("Not Supported")
    return [gpu["mig"], gpu["mig"]]
