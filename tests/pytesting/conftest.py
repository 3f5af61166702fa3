"""pytest in processes of its own, on a machine whose GPUs are made up."""

import json
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support import fake_nvml

ROOT = Path(__file__).parents[2]

CONFTEST = """
import sys

pytest_plugins = ["harness.pytesting.plugin"]


def pytest_unconfigure():
    assert "torch" not in sys.modules  # in the controller as in a worker
"""

PYPROJECT = """
[tool.pytest.ini_options]
addopts = "--strict-markers -ra -p no:cacheprovider"
markers = ["gpu: needs an NVIDIA GPU"]
"""

FROM_OUTSIDE = ("CUDA_VISIBLE_DEVICES", "FAKE_NVML", "PYTEST_XDIST_AUTO_NUM_WORKERS", "PYTEST_XDIST_WORKER")
"""Variables of this process, itself a pytest worker, that would change what is tested."""

Run = Callable[..., pytest.RunResult]


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Runs the pytester's tests with these arguments on a machine of these GPUs; without any, it has no driver."""
    packages = tmp_path / "packages"
    packages.mkdir()
    shutil.copy(fake_nvml.__file__, packages / "pynvml.py")
    for name in FROM_OUTSIDE:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(packages), str(ROOT), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # starts in half the time
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # claims of its own
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    pytester.makeconftest(CONFTEST)
    pytester.makepyprojecttoml(PYPROJECT)

    def run_with(
        *arguments: str, gpus: tuple[dict[str, Any], ...] = (), visible: str | None = None
    ) -> pytest.RunResult:
        if gpus:
            monkeypatch.setenv("FAKE_NVML", json.dumps(gpus))
        if visible is not None:
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        return pytester.runpytest_subprocess("-p", "xdist", "-p", "xdist.looponfail", *arguments)

    return run_with
