"""What the engine's probes keep an eye on between steps: addresses of captured tensors, grad mode and stream."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from greenlet import getcurrent

from harness.engine.v0_5_12.graph_watch import _Captured
from harness.engine.v0_5_12.loop import EventLoop, run_unattended


@dataclass
class Buffers:
    seq_lens: torch.Tensor
    input_ids: torch.Tensor
    count: int = 3


def captured() -> tuple[Any, _Captured]:
    backend = SimpleNamespace(kv_indptr=torch.zeros(4), attn_backends=[SimpleNamespace(kv_indices=torch.zeros(9))])
    runner = SimpleNamespace(buffers=Buffers(torch.zeros(4), torch.zeros(4)), attn_backend=backend)
    return runner, _Captured(runner)


def test_nothing_has_moved() -> None:
    runner, watched = captured()
    runner.buffers.seq_lens.fill_(7)
    runner.attn_backend.kv_indptr[1:3] = 1
    runner.buffers.count = 5
    runner.attn_backend.more = torch.zeros(2)  # wasn't there at capture: no graph reads it
    assert watched.moved() == ()
    runner.attn_backend = SimpleNamespace(**vars(runner.attn_backend))  # another object, with the same tensors
    assert watched.moved() == ()


@pytest.mark.parametrize(
    ("move", "names"),
    [
        (lambda runner: setattr(runner.buffers, "seq_lens", torch.zeros(4)), ("seq_lens",)),
        (lambda runner: runner.buffers.seq_lens.set_(torch.zeros(4)), ("seq_lens",)),
        (lambda runner: setattr(runner.buffers, "seq_lens", None), ("seq_lens",)),
        (lambda runner: setattr(runner, "buffers", None), ("seq_lens", "input_ids")),
        (lambda runner: delattr(runner.attn_backend, "kv_indptr"), ("attn_backend.kv_indptr",)),
        (
            lambda runner: setattr(runner.attn_backend.attn_backends[0], "kv_indices", torch.zeros(9)),
            ("attn_backend.kv_indices",),
        ),
        (lambda runner: runner.attn_backend.attn_backends.clear(), ("attn_backend.kv_indices",)),
    ],
    ids=["another tensor", "other memory", "no tensor", "no buffers", "no attribute", "of a part", "no part"],
)
def test_moved(move: Any, names: tuple[str, ...]) -> None:
    runner, watched = captured()
    move(runner)
    assert watched.moved() == names


class Streams:
    """A device module with streams that are numbers."""

    def __init__(self) -> None:
        self.stream = 0

    def current_stream(self) -> int:
        return self.stream

    def set_stream(self, stream: int) -> None:
        self.stream = stream


class Loop:
    """Gives way with grad mode off and on a stream of its own; ends with an error when told."""

    def __init__(self) -> None:
        self.device_module = Streams()
        self.seen: list[tuple[bool, int]] = []

    def recv_requests(self) -> list[Any]:
        raise AssertionError("replaced by the event loop")

    def run_event_loop(self) -> None:
        torch.set_grad_enabled(False)
        self.device_module.stream = 5
        try:
            while True:
                requests = self.recv_requests()
                self.seen.append((torch.is_grad_enabled(), self.device_module.stream))
                if requests:
                    raise RuntimeError(requests[0])
        finally:
            torch.set_grad_enabled(True)
            self.device_module.stream = 9


def outside(loop: Loop) -> tuple[bool, int]:
    return torch.is_grad_enabled(), loop.device_module.stream


def test_each_side_has_its_own_grad_mode_and_stream() -> None:
    assert getcurrent().parent is None
    scheduler = Loop()
    loop = EventLoop(scheduler)
    assert outside(scheduler) == (True, 0)
    loop.iterate([])
    assert outside(scheduler) == (True, 0)
    scheduler.device_module.stream = 3
    with torch.no_grad():
        loop.iterate([])
        assert outside(scheduler) == (False, 3)
    assert scheduler.seen == [(False, 5)] * 2
    with torch.no_grad():
        with pytest.raises(RuntimeError, match="an end"):
            loop.iterate(["an end"])
        assert outside(scheduler) == (False, 3)
    with pytest.raises(RuntimeError, match="ended with an error"):
        loop.iterate([])


class Streaming(Loop):
    """A loop that makes a stream whenever it is entered, as SGLang's does."""

    def __init__(self) -> None:
        super().__init__()
        self.device_module.Stream = lambda priority=0: object()

    def run_event_loop(self) -> None:
        self.schedule_stream = self.device_module.Stream(priority=0)
        super().run_event_loop()


def test_a_loop_that_is_entered_again_keeps_its_stream() -> None:
    scheduler = Streaming()
    make = scheduler.device_module.Stream
    EventLoop(scheduler).close()
    first = scheduler.schedule_stream
    EventLoop(scheduler).close()
    run_unattended(scheduler, [[]])
    assert scheduler.schedule_stream is first
    assert scheduler.device_module.Stream is make
