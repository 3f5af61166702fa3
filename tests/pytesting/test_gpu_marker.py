"""Tests that need a GPU, where there is none to be had."""

from typing import Any

import pytest

from tests.pytesting.conftest import Run

TESTS = """
import pytest


@pytest.mark.gpu
def test_on_a_gpu():
    raise AssertionError("there is none")


def test_elsewhere(device):
    assert device == "cpu"
"""

FREE, SMALL, BUSY = {"uuid": "GPU-cc03"}, {"uuid": "GPU-aa01", "free_gib": 2.1}, {"uuid": "GPU-aa02", "pids": [1, 2]}


@pytest.mark.parametrize(
    ("arguments", "gpus", "visible", "reason"),
    [
        ((), (), None, "no NVIDIA GPU (NVML Shared Library Not Found)"),
        (("-n", "1"), (SMALL, BUSY), None, "GPU 0 has 2.1 GiB free, needs 8; GPU 1 is in use by processes 1, 2"),
        ((), (FREE,), "", "CUDA_VISIBLE_DEVICES='' leaves none of 1 GPUs"),
        (("--device", "cpu"), (FREE,), None, "--device cpu was given"),
    ],
)
def test_skipped_with_the_reason(
    pytester: pytest.Pytester,
    run: Run,
    arguments: tuple[str, ...],
    gpus: tuple[dict[str, Any], ...],
    visible: str | None,
    reason: str,
) -> None:
    pytester.makepyfile(TESTS)
    result = run(*arguments, gpus=gpus, visible=visible)
    result.assert_outcomes(passed=1, skipped=1)
    assert f"device: cpu, emulated: {reason}" in result.outlines
    assert any(
        line.startswith("SKIPPED") and line.endswith(f"needs an NVIDIA GPU: {reason}") for line in result.outlines
    )


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--require-gpu", "-n", "auto"), "--require-gpu: no usable GPU: GPU 0 has 2.1 GiB free, needs 8"),
        (("--device", "cuda"), "--device cuda: no usable GPU: GPU 0 has 2.1 GiB free, needs 8"),
        (("--require-gpu", "--device", "cpu"), "--require-gpu and --device cpu exclude each other"),
    ],
)
def test_required(pytester: pytest.Pytester, run: Run, arguments: tuple[str, ...], complaint: str) -> None:
    pytester.makepyfile(TESTS)
    result = run(*arguments, gpus=(SMALL,))
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert [line for line in result.errlines if line] == [f"ERROR: {complaint}"]
