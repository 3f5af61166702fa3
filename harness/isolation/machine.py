"""How many engines a machine without a GPU can carry: cores and memory, of a container where it has less."""

import os
from collections.abc import Iterator
from pathlib import Path

import psutil

ENGINE_BYTES = 1_500_000_000
"""An engine peaks at 1.1 GB on the emulated device; its tests keep tensors and traces of their own."""
RESERVED_BYTES = 1_000_000_000
"""Left to the system and to whoever started the workers."""
CGROUPS = Path("/sys/fs/cgroup")
OWN_CGROUP = Path("/proc/self/cgroup")
COMPILERS = frozenset({"ninja", "nvcc", "cicc", "ptxas", "cudafe++", "cc1plus"})
"""Processes that compile kernels: for flashinfer's attention minutes on a busy machine."""


def compiling() -> bool:
    """Whether kernels are compiled here: whoever needs them waits for it, or for the lock of another who does."""
    return any(process.info["name"] in COMPILERS for process in psutil.process_iter(["name"]))


def workers_without_gpu(cores: int, memory_bytes: int) -> int:
    """How many workers fit, each with an engine on the emulated device; one even where it doesn't fit."""
    return max(1, min(cores, (memory_bytes - RESERVED_BYTES) // ENGINE_BYTES))


def cores() -> int:
    """Cores that this process may use: its affinity, and the CPU time that its container grants."""
    return max(1, min([len(os.sched_getaffinity(0)), *_granted_cores()]))


def memory_bytes() -> int:
    """Memory to be had: what is available, or its container's limit where that is lower."""
    limits = [int(limit) for limit in _cgroup_settings("memory.max") if limit != "max"]
    return min([psutil.virtual_memory().available, *limits])


def _granted_cores() -> Iterator[int]:
    for setting in _cgroup_settings("cpu.max"):
        quota, period = setting.split()
        if quota != "max":
            yield int(quota) // int(period)


def _cgroup_settings(name: str) -> Iterator[str]:
    """A setting of this process's control group, version 2, and of each group above it: all of them bind."""
    try:
        lines = OWN_CGROUP.read_text().splitlines()
    except OSError:
        return
    own = [CGROUPS / line.removeprefix("0::/") for line in lines if line.startswith("0::/")]
    for group in own:
        for folder in (group, *group.parents):
            setting = folder / name
            if folder.is_relative_to(CGROUPS) and setting.is_file():
                yield setting.read_text().strip()
