"""What the emulated graphs refuse during capture is what CUDA refuses, and what they allow is what CUDA allows."""

from collections.abc import Callable

import pytest
import torch

from tests.support.host_syncs import ALLOWED, HOST_SYNCS

pytestmark = pytest.mark.gpu
Operation = Callable[[torch.Tensor], object]


def capture(operation: Operation) -> None:
    source = torch.ones(3, device="cuda")
    operation(source.clone())  # warm up: some operations allocate workspaces once
    torch.cuda.synchronize()
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        operation(source + 1)


@pytest.mark.parametrize("operation", [pytest.param(sync, id=name) for name, sync in ALLOWED.items()])
def test_allowed(operation: Operation) -> None:
    capture(operation)


@pytest.mark.parametrize("operation", [pytest.param(sync, id=name) for name, sync in HOST_SYNCS.items()])
def test_refused(operation: Operation) -> None:
    with pytest.raises(RuntimeError, match="captur"):
        capture(operation)
    torch.cuda.synchronize()
