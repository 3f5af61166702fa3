"""SGLang's own event loop, stepped by hand.

`Scheduler.run_event_loop` runs unchanged in a greenlet; its call of `recv_requests`, once an iteration, is where it
gives way. So the order of calls is SGLang's, the loops of the next releases and those that a patch changes included.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Any

import torch
from greenlet import GreenletExit, getcurrent, greenlet


class EventLoop:
    """The normal or the overlap loop of one scheduler, an iteration at a time."""

    def __init__(self, scheduler: Any) -> None:
        scheduler.recv_requests = self._give_way
        self._ambient = _Ambient(scheduler.device_module)
        self._greenlet = greenlet(scheduler.run_event_loop)
        self._host: greenlet = getcurrent()
        with self._ambient, _same_stream(scheduler):
            self._greenlet.switch()

    def iterate(self, requests: list[Any]) -> None:
        """Hand `requests` to the scheduler and run one iteration; raises what the scheduler raises."""
        if self._greenlet.dead:
            raise RuntimeError("the scheduler's loop ended with an error: reset the engine, or boot another")
        self._host = getcurrent()
        with self._ambient:
            self._greenlet.switch(requests)

    def close(self) -> None:
        """Leave the loop as if it were interrupted while waiting for requests."""
        if not self._greenlet.dead:
            self._host = getcurrent()
            with self._ambient:
                self._greenlet.throw(GreenletExit)

    def _give_way(self) -> Any:
        return self._host.switch()


class _EndOfMessages(BaseException):
    """Leaves `Scheduler.run_event_loop`, which has no other way out; nothing in SGLang catches it."""


def run_unattended(scheduler: Any, received: Iterable[list[Any]]) -> None:
    """The loop as SGLang runs it, with nothing of ours in it but where its messages come from."""
    remaining = iter(received)
    entering = ExitStack()

    def recv_requests() -> list[Any]:
        entering.close()
        try:
            return next(remaining)
        except StopIteration:
            raise _EndOfMessages from None

    scheduler.recv_requests = recv_requests
    with suppress(_EndOfMessages), entering:
        entering.enter_context(_same_stream(scheduler))
        scheduler.run_event_loop()


@contextmanager
def _same_stream(scheduler: Any) -> Iterator[None]:
    """While the loop is entered again, let it have the stream that it had before, not another.

    `run_event_loop` makes one each time; torch hands out 32 in turn, and cuBLAS takes 32 MiB for each on an H200.
    """
    stream, module = getattr(scheduler, "schedule_stream", None), scheduler.device_module
    if stream is None:
        yield
        return
    make = module.Stream
    module.Stream = lambda **_: stream
    try:
        yield
    finally:
        module.Stream = make


class _Ambient:
    """Grad mode and current stream belong to the thread, not to the greenlet: each side gets its own back.

    Entered and left once an iteration, so that it writes only what differs.
    """

    def __init__(self, streams: Any) -> None:
        self._stream, self._set_stream = _current_stream(streams)
        self._inside: tuple[bool, Any] | None = None

    def __enter__(self) -> None:
        self._outside = torch.is_grad_enabled(), self._stream()
        if self._inside is not None:
            self._write(self._outside, self._inside)

    def __exit__(self, *_: object) -> None:
        now = torch.is_grad_enabled(), self._stream()
        if self._inside is None:  # the loop gives way at one place, always in the same state
            self._inside = now
        self._write(now, self._outside)

    def _write(self, now: tuple[bool, Any], wanted: tuple[bool, Any]) -> None:
        if now[0] != wanted[0]:
            torch._C._set_grad_enabled(wanted[0])
        if now[1] != wanted[1]:
            self._set_stream(wanted[1])


def _current_stream(streams: Any) -> tuple[Callable[[], Any], Callable[[Any], None]]:
    """How to read and to set the current stream of a device module.

    Of `torch.cuda` what its own functions call: they look the current device up each time, and make an object.
    """
    if streams is torch.cuda:
        return partial(torch._C._cuda_getCurrentStream, torch.cuda.current_device()), _set_cuda_stream
    return streams.current_stream, getattr(streams, "set_stream", lambda _: None)


def _set_cuda_stream(stream: tuple[int, int, int]) -> None:
    torch._C._cuda_setStream(stream_id=stream[0], device_index=stream[1], device_type=stream[2])
