"""How many workers fit a machine without a GPU."""

import os
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from harness.isolation import machine

GB = 1_000_000_000


@pytest.mark.parametrize(
    ("cores", "memory_gb", "workers"), [(2, 24, 2), (64, 16, 10), (8, 4, 2), (4, 2.4, 1), (4, 0.5, 1), (1, 500, 1)]
)
def test_fitting_cores_and_memory(cores: int, memory_gb: float, workers: int) -> None:
    assert machine.workers_without_gpu(cores, int(memory_gb * GB)) == workers


@pytest.fixture
def container(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """8 cores and 32 GB, and in them the control group /slice/job."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=32 * GB))
    monkeypatch.setattr(machine, "CGROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(machine, "OWN_CGROUP", tmp_path / "own")
    (tmp_path / "own").write_text("4:memory:/elsewhere\n0::/slice/job\n")
    job = tmp_path / "cgroup/slice/job"
    job.mkdir(parents=True)
    return job


def test_without_limits(container: Path) -> None:
    (container / "memory.max").write_text("max\n")
    (container / "cpu.max").write_text("max 100000\n")
    assert (machine.cores(), machine.memory_bytes()) == (8, 32 * GB)


def test_limits_of_the_container(container: Path) -> None:
    (container / "memory.max").write_text(f"{4 * GB}\n")
    (container / "cpu.max").write_text("250000 100000\n")
    assert (machine.cores(), machine.memory_bytes()) == (2, 4 * GB)


def test_limits_of_a_group_above(container: Path) -> None:
    (container / "memory.max").write_text("max\n")
    (container.parent / "memory.max").write_text(f"{8 * GB}\n")
    assert machine.memory_bytes() == 8 * GB


def test_a_limit_that_does_not_bind(container: Path) -> None:
    (container / "memory.max").write_text(f"{64 * GB}\n")
    (container / "cpu.max").write_text("1600000 100000\n")
    assert (machine.cores(), machine.memory_bytes()) == (8, 32 * GB)


def test_less_than_a_core(container: Path) -> None:
    (container / "cpu.max").write_text("50000 100000\n")
    assert machine.cores() == 1


def test_no_control_groups(container: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "OWN_CGROUP", container / "none")
    assert (machine.cores(), machine.memory_bytes()) == (8, 32 * GB)
