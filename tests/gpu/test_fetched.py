"""What was copied before a fault of the device can be looked at after it, on a real GPU."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.gpu

COPIES_AROUND_A_FAULT = """
import torch
from harness.fetched import Copy

seen = torch.tensor([3, 1, 2], device="cuda")
before = Copy(seen, seen[:1].int())
seen[torch.tensor([4], device="cuda")]
try:
    torch.cuda.synchronize()
except RuntimeError:
    print(before.values(0).tolist(), before.values(1).tolist())
"""


def test_a_copy_outlives_a_fault() -> None:
    """In a process of its own, which can't use its GPU afterwards."""
    done = subprocess.run([sys.executable, "-c", COPIES_AROUND_A_FAULT], capture_output=True, text=True, check=False)
    assert done.stdout == "[3, 1, 2] [3]\n"


def test_a_copy_waits_for_what_comes_before_it() -> None:
    import torch

    from harness.fetched import Copy

    slow = torch.ones(8192, 8192, device="cuda")
    copy = Copy((slow @ slow)[0, :2].long(), torch.tensor([5], device="cuda", dtype=torch.int32))
    assert [copy.values(place).tolist() for place in range(2)] == [[8192, 8192], [5]]
