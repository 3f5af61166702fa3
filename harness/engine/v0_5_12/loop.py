"""SGLang's own event loop, stepped by hand.

`Scheduler.run_event_loop` runs unchanged in a greenlet; its call of `recv_requests`, once an iteration, is where it
gives way. So the order of calls is SGLang's, the loops of the next releases and those that a patch changes included.
"""

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import torch
from greenlet import GreenletExit, getcurrent, greenlet


class EventLoop:
    """The normal or the overlap loop of one scheduler, an iteration at a time."""

    def __init__(self, scheduler: Any) -> None:
        self._scheduler = scheduler
        self._streams = scheduler.device_module
        scheduler.recv_requests = self._give_way
        self._greenlet = greenlet(scheduler.run_event_loop)
        self._host: greenlet = getcurrent()
        self._inside: tuple[bool, Any] | None = None
        self._switch([])

    def iterate(self, requests: list[Any]) -> None:
        """Hand `requests` to the scheduler and run one iteration; raises what the scheduler raises."""
        self._switch(requests)

    def close(self) -> None:
        """Leave the loop as if it were interrupted while waiting for requests."""
        if not self._greenlet.dead:
            self._host = getcurrent()
            with _Ambient(self):
                self._greenlet.throw(GreenletExit)

    def _switch(self, requests: list[Any]) -> None:
        if self._greenlet.dead:
            raise RuntimeError("the scheduler's loop ended with an error: reset the engine, or boot another")
        self._host = getcurrent()
        with _Ambient(self):
            self._greenlet.switch(requests) if self._greenlet else self._greenlet.switch()

    def _give_way(self) -> Any:
        return self._host.switch()


class _EndOfMessages(BaseException):
    """Leaves `Scheduler.run_event_loop`, which has no other way out; nothing in SGLang catches it."""


def run_unattended(scheduler: Any, received: Iterable[list[Any]]) -> None:
    """The loop as SGLang runs it, with nothing of ours in it but where its messages come from."""
    remaining = iter(received)

    def recv_requests() -> list[Any]:
        try:
            return next(remaining)
        except StopIteration:
            raise _EndOfMessages from None

    scheduler.recv_requests = recv_requests
    with suppress(_EndOfMessages):
        scheduler.run_event_loop()


class _Ambient:
    """Grad mode and current stream belong to the thread, not to the greenlet: each side gets its own back."""

    def __init__(self, loop: EventLoop) -> None:
        self._loop = loop

    def __enter__(self) -> None:
        self._outside = self._read()
        if self._loop._inside is not None:
            self._write(self._loop._inside)

    def __exit__(self, *_: object) -> None:
        if self._loop._inside is None:  # the loop gives way at one place, always in the same state
            self._loop._inside = self._read()
        self._write(self._outside)

    def _read(self) -> tuple[bool, Any]:
        return torch.is_grad_enabled(), self._loop._streams.current_stream()

    def _write(self, state: tuple[bool, Any]) -> None:
        torch.set_grad_enabled(state[0])
        if state[1] is not None and hasattr(self._loop._streams, "set_stream"):
            self._loop._streams.set_stream(state[1])
