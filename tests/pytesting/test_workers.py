"""How many workers there are, and which GPU each sees."""

import pytest

from harness.isolation import gpus
from harness.isolation.gpus import Gpu
from tests.pytesting.conftest import CONFTEST, Run

SEEN = """
import os
import sys
from pathlib import Path

import pytest

assert "torch" not in sys.modules
AT_IMPORT = os.environ["CUDA_VISIBLE_DEVICES"]


@pytest.mark.gpu
def test_on_a_gpu(worker_id, device):
    assert device == "cuda"
    Path(f"{worker_id}.seen").write_text(AT_IMPORT)
"""

EVERY_WORKER = ("--dist", "each")
"""Each worker runs every test, so that each one is seen."""

FREE, BUSY, SMALL = {"uuid": "GPU-aa01"}, {"uuid": "GPU-aa02", "pids": [1]}, {"uuid": "GPU-aa03", "free_gib": 2.1}
ALSO_FREE = {"uuid": "GPU-bb04"}


def seen(pytester: pytest.Pytester) -> dict[str, str]:
    return {file.stem: file.read_text() for file in pytester.path.glob("*.seen")}


def test_auto_is_a_worker_for_each_usable_gpu(pytester: pytest.Pytester, run: Run) -> None:
    pytester.makepyfile(SEEN)
    claimed = gpus.claim(Gpu("GPU-cc05", 4))
    assert claimed is not None
    result = run("-n", "auto", *EVERY_WORKER, gpus=(FREE, BUSY, SMALL, ALSO_FREE, {"uuid": "GPU-cc05"}))
    claimed.release()
    result.assert_outcomes(passed=2)
    assert seen(pytester) == {"gw0": "GPU-aa01", "gw1": "GPU-bb04"}
    result.stdout.fnmatch_lines_random(
        [
            "device: cuda: GPU 0, NVIDIA Fake, 79.0 of 80.0 GiB free",
            "device: cuda: GPU 3, *",
            "left out: GPU 1 is in use by process 1",
            "left out: GPU 2 has 2.1 GiB free, needs 8",
            "left out: GPU 4 is in use by another run of yours",
        ]
    )


@pytest.mark.parametrize(("visible", "chosen"), [(None, "GPU-aa01"), ("2", "GPU-bb04"), ("GPU-bb,0", "GPU-bb04")])
def test_without_workers_the_first_visible_gpu(
    pytester: pytest.Pytester, run: Run, visible: str | None, chosen: str
) -> None:
    pytester.makepyfile(SEEN)
    run(gpus=(FREE, BUSY, ALSO_FREE), visible=visible).assert_outcomes(passed=1)
    assert seen(pytester) == {"master": chosen}


def test_auto_without_a_gpu_is_what_cores_and_memory_carry(pytester: pytest.Pytester, run: Run) -> None:
    pytester.makeconftest(
        CONFTEST
        + """
from harness.isolation import machine

machine.cores = lambda: 3
machine.memory_bytes = lambda: 4_100_000_000  # for two


def pytest_report_header(config):
    return f"workers: {config.option.numprocesses}"
"""
    )
    result = run("-n", "auto", "--collect-only")  # starts none
    result.stdout.fnmatch_lines_random(["workers: 2", "device: cpu, emulated: no NVIDIA GPU (*)"])


def test_torch_imported_too_early(pytester: pytest.Pytester, run: Run) -> None:
    pytester.makepyfile(SEEN)
    (pytester.path / "torch.py").touch()
    pytester.makeconftest('import torch\n\npytest_plugins = ["harness.pytesting.plugin"]')
    result = run(gpus=(FREE,))
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: torch was imported before pytest chose a GPU: *"])
    assert not seen(pytester)
