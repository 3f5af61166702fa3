"""`bench checks`, as a person runs it."""

import json
import subprocess
import sys

import pytest

from harness.bench.checks import LOOKING
from harness.engine.device import Device


@pytest.mark.slow
def test_each_family_alone(device: Device) -> None:
    command = [sys.executable, "-m", "harness.cli", "bench", "checks", "--device", device, "--worker", "v2"]
    options = ["--checks", "I1,I5", "--each", "--pairs", "1", "--json"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert figures["each"].keys() == {LOOKING, "I1-shapes", "I5-sums"}
    assert [len(ratios) for ratios in (figures["ratios"], *figures["each"].values())] == [1, 1, 1, 1]
    assert figures["evaluated"].keys() == {"I1-shapes", "I5-sums"}
