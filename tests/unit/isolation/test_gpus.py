"""Which GPUs a survey finds and leaves out, with NVML faked."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from harness.isolation import gpus
from harness.isolation.gpus import Gpu
from tests.support import fake_nvml

ALIKE = [{"uuid": "GPU-aa01"}, {"uuid": "GPU-aa02"}, {"uuid": "GPU-bb03"}]


@pytest.fixture(autouse=True)
def _no_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", fake_nvml)
    monkeypatch.delenv("FAKE_NVML", raising=False)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Any:
    return lambda *described: monkeypatch.setenv("FAKE_NVML", json.dumps(described))


def reasons() -> list[str | None]:
    return [gpu.why_not for gpu in gpus.survey()]


def test_a_free_gpu(machine: Any) -> None:
    machine({"uuid": "GPU-aa01", "free_gib": 79})
    [gpu] = gpus.survey()
    assert gpu == Gpu("GPU-aa01", 0, "NVIDIA Fake", free_bytes=79 << 30, total_bytes=80 << 30)
    assert gpus.usable() == [gpu]
    assert str(gpu) == "GPU 0, NVIDIA Fake, 79.0 of 80.0 GiB free"


def test_no_driver() -> None:
    assert gpus.survey() == []
    assert gpus.why_none() == "no NVIDIA GPU (NVML Shared Library Not Found)"


def test_no_gpu_in_the_machine(machine: Any) -> None:
    machine()
    assert gpus.survey() == []
    assert gpus.why_none() == "no NVIDIA GPU"


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert gpus.survey() == []
    assert gpus.why_none() == "no NVIDIA GPU (can't tell without nvidia-ml-py)"


@pytest.mark.parametrize(
    ("described", "reason"),
    [
        ({"free_gib": 2.1}, "GPU 0 has 2.1 GiB free, needs 8"),
        ({"pids": [1]}, "GPU 0 is in use by process 1"),
        ({"pids": [2, 1, 2]}, "GPU 0 is in use by processes 1, 2"),
        ({"pids": [1], "free_gib": 7.9}, "GPU 0 is in use by process 1 and has 7.9 GiB free, needs 8"),
        ({"mig": 1}, "GPU 0 is in MIG mode, and the harness takes whole GPUs only"),
        ({"mig": 0}, None),
        ({"free_gib": 8}, None),
        ({"lost": True}, "GPU 0 can't be read: GPU is lost"),
    ],
)
def test_reasons(machine: Any, described: dict[str, Any], reason: str | None) -> None:
    machine({"uuid": "GPU-aa01"} | described, {"uuid": "GPU-aa02"})
    assert reasons() == [reason, None]


def test_own_processes_are_not_foreign(machine: Any) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        machine({"uuid": "GPU-aa01", "pids": [os.getpid(), child.pid, os.getppid()]})
        [gpu] = gpus.survey()
        child.communicate(b"\n")
    assert gpu.foreign == (os.getppid(),)


@pytest.mark.parametrize(
    ("setting", "numbers"),
    [
        ("0,1,2", [0, 1, 2]),
        ("2, 0", [2, 0]),
        ("GPU-aa02", [1]),
        ("GPU-bb,GPU-aa01", [2, 0]),
        ("GPU-aa,2", []),  # two GPUs begin so
        ("1,GPU-aa01", [1, 0]),
        ("", []),
        ("-1", []),
        ("2,-1,0", [2]),
        ("0,3,1", [0]),
        ("0,GPU-cc,1", [0]),
        ("NoDevFiles", []),
        ("1,1", []),
        ("1,GPU-aa02", []),
    ],
)
def test_visible_devices(machine: Any, monkeypatch: pytest.MonkeyPatch, setting: str, numbers: list[int]) -> None:
    machine(*ALIKE)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", setting)
    assert [gpu.number for gpu in gpus.survey()] == numbers


def test_why_nothing_is_visible(machine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(*ALIKE)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert gpus.why_none() == "CUDA_VISIBLE_DEVICES='' leaves none of 3 GPUs"


def test_a_mig_instance_is_left_out(machine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    machine({"uuid": "GPU-aa01", "mig": 1})
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "MIG-1234")
    assert reasons() == ["MIG-1234 is a MIG instance, and the harness takes whole GPUs only"]


def test_one_claim_a_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    one, other = Gpu("GPU-aa01", 0), Gpu("GPU-aa02", 1)
    held = gpus.claim(one)
    assert held is not None
    assert gpus.claim(one) is None
    assert gpus.claim(other) is not None
    held.release()
    assert gpus.claim(one) is not None
