"""What the pytest plugin takes for an unusable GPU, on a real one."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.gpu

READS_BEYOND = """
import torch
from harness.pytesting import poisoned

tensor = torch.zeros(4, device="cuda")
print(f"before: {poisoned.fault()!r}")
tensor[torch.tensor([4], device="cuda")]
print(f"after: {poisoned.fault()!r}")
"""


def test_a_device_side_assert_is_seen() -> None:
    """In a process of its own, which can't use its GPU afterwards."""
    done = subprocess.run([sys.executable, "-c", READS_BEYOND], capture_output=True, text=True, check=True)
    before, after = done.stdout.splitlines()
    assert before == "before: ''"
    assert "device-side assert" in after
