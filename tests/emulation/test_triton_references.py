"""The helper kernels' references against the kernels themselves, under Triton's interpreter."""

import inspect

import numpy
import pytest
import torch

from harness.emulation.kernels import TRITON_REFERENCES, ReplacedKernel, TritonReference
from harness.emulation.kernels.indices import assign_req_to_token_pool
from tests.emulation.launch_cases import CASES, SEQUENTIAL_CASES, Case
from tests.emulation.launches import Launch
from tests.emulation.triton_source import kernels_of

ALL_CASES = [*CASES, *SEQUENTIAL_CASES]
LAUNCHES = 4

pytestmark = pytest.mark.filterwarnings("ignore:Conversion of an array:DeprecationWarning")


def assert_equal(real: Launch, emulated: Launch) -> None:
    expected = real.tensors()
    for name, tensor in emulated.tensors().items():
        assert torch.equal(tensor, expected[name]), f"{name}: {tensor} instead of {expected[name]}"


@pytest.mark.parametrize("case", ALL_CASES, ids=lambda case: case[1].__name__)
def test_same_memory_after_a_launch(case: Case) -> None:
    path, reference, random_launch = case
    kernel = getattr(kernels_of(path), reference.__name__)
    rng = numpy.random.default_rng(7)
    for _ in range(LAUNCHES):
        launch = random_launch(rng)
        real, emulated = launch.on("cpu"), launch.on("cpu")
        kernel[real.grid](*real.arguments.values(), **real.options)
        TritonReference(kernel, reference)[emulated.grid](*emulated.arguments.values(), **emulated.options)
        assert_equal(real, emulated)


@pytest.mark.parametrize("case", ALL_CASES, ids=lambda case: case[1].__name__)
def test_same_parameters(case: Case) -> None:
    """Names and order, so that a launch by keyword works too."""
    path, reference, random_launch = case
    kernel = getattr(kernels_of(path), reference.__name__)
    names = list(inspect.signature(kernel.fn).parameters)
    assert list(inspect.signature(reference).parameters) == ["grid", *names]
    assert list(random_launch(numpy.random.default_rng(0)).arguments) == names


def test_every_replaced_kernel_is_tested() -> None:
    replaced = {entry.attribute for entry in TRITON_REFERENCES if isinstance(entry, ReplacedKernel)}
    assert replaced == {reference.__name__ for _, reference, _ in ALL_CASES}


def test_writing_past_the_storage_raises() -> None:
    table = torch.zeros(1, 8, dtype=torch.int32)
    row, start, end = (torch.tensor([value]) for value in (0, 4, 12))
    with pytest.raises(ValueError, match="broadcast"):
        assign_req_to_token_pool((1,), row, table, start, end, torch.arange(8), 8, 1)
