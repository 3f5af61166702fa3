"""Emulated CUDA graphs: replay reads the captured addresses and runs no Python; host syncs raise."""

from collections.abc import Callable

import pytest
import torch
import triton
import triton.language as tl

from harness.emulation.graphs import CaptureError, EmulatedGraph
from harness.emulation.opaque import opaque
from tests.support.host_syncs import ALLOWED, HOST_SYNCS


def test_replay_reads_and_writes_captured_tensors() -> None:
    source, weight = torch.ones(3), torch.tensor([1.0, 2.0, 3.0])
    graph = EmulatedGraph()
    output = graph.capture(lambda: (source * weight).sum(0, keepdim=True) + 1)
    assert output.tolist() == [7.0]

    source.fill_(10)
    graph.replay()
    assert output.tolist() == [61.0]


def test_replay_does_not_run_python() -> None:
    calls: list[int] = []
    source = torch.zeros(2)
    graph = EmulatedGraph()

    def run_once() -> torch.Tensor:
        calls.append(1)
        return source + len(calls)  # a value of the host: fixed at capture

    output = graph.capture(run_once)
    calls.append(1)
    graph.replay()
    assert len(calls) == 2
    assert output.tolist() == [1.0, 1.0]


def test_a_rebound_input_is_not_seen() -> None:
    inputs = {"ids": torch.ones(2)}
    graph = EmulatedGraph()
    output = graph.capture(lambda: inputs["ids"] * 2)
    inputs["ids"] = torch.full((2,), 5.0)
    graph.replay()
    assert output.tolist() == [2.0, 2.0]


def test_views_of_captured_tensors_follow() -> None:
    source = torch.arange(6.0)
    graph = EmulatedGraph()
    output = graph.capture(lambda: source.view(2, 3).transpose(0, 1).reshape(-1)[1:4] + 0)
    source += 10
    graph.replay()
    assert output.tolist() == (torch.arange(6.0) + 10).view(2, 3).t().reshape(-1)[1:4].tolist()


def test_in_place_views_happen_once() -> None:
    source = torch.arange(4.0)
    graph = EmulatedGraph()

    def run_once() -> torch.Tensor:
        doubled = source * 2
        doubled.unsqueeze_(0)
        return doubled.t_() + 1

    output = graph.capture(run_once)
    for offset in (10, 20):
        source.copy_(torch.arange(4.0) + offset)
        graph.replay()
        assert output.tolist() == [[2 * (value + offset) + 1] for value in range(4)]


def test_in_place_operations_are_replayed() -> None:
    buffer, source = torch.zeros(4), torch.arange(4.0)
    graph = EmulatedGraph()

    def run_once() -> None:
        buffer[1:3].copy_(source[1:3])
        buffer.add_(1)

    graph.capture(run_once)
    graph.replay()
    assert buffer.tolist() == [2.0, 2.0, 3.0, 2.0]


def test_opaque_kernels_are_one_node() -> None:
    source, output = torch.ones(2), torch.zeros(2)

    @opaque
    def double(read: torch.Tensor, written: torch.Tensor) -> None:
        written.copy_(read * float(read.sum()))  # a kernel may look at values

    graph = EmulatedGraph()
    graph.capture(lambda: double(source, output))
    assert graph.replay_plan is not None
    assert len(graph.replay_plan) == 1
    source.fill_(3)
    graph.replay()
    assert output.tolist() == [18.0, 18.0]


def test_triton_kernels_are_replayed() -> None:
    from harness.emulation.adaptations import adapt_triton

    @triton.jit
    def add_one(read, written, size: tl.constexpr):  # type: ignore[no-untyped-def]
        at = tl.arange(0, size)
        tl.store(written + at, tl.load(read + at) + 1)

    adapt_triton()
    source, output = torch.zeros(4), torch.zeros(4)
    graph = EmulatedGraph()
    graph.capture(lambda: add_one[(1,)](source, output, 4))
    source.fill_(7)
    graph.replay()
    assert output.tolist() == [8.0] * 4


@pytest.mark.parametrize(
    "sync",
    [pytest.param(sync, id=name) for name, sync in (HOST_SYNCS | {"numpy": lambda tensor: tensor.numpy()}).items()],
)
def test_host_sync_during_capture_raises(sync: Callable[[torch.Tensor], object]) -> None:
    source = torch.ones(3)
    with pytest.raises(CaptureError, match="operation not permitted when stream is capturing"):
        EmulatedGraph().capture(lambda: sync(source + 1))
    assert source.tolist() == [1.0] * 3  # allowed again


@pytest.mark.parametrize("operation", [pytest.param(operation, id=name) for name, operation in ALLOWED.items()])
def test_what_needs_no_host_is_captured(operation: Callable[[torch.Tensor], object]) -> None:
    source = torch.ones(3)
    EmulatedGraph().capture(lambda: operation(source + 1))


def test_a_second_capture_and_a_replay_before_any_raise() -> None:
    with pytest.raises(CaptureError, match="a second capture"):
        EmulatedGraph().capture(lambda: EmulatedGraph().capture(lambda: None))
    with pytest.raises(RuntimeError, match="never captured"):
        EmulatedGraph().replay()
