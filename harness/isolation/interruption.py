"""Ctrl-C as a wish that is asked for now and then, in place of an exception that comes amid anything."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(slots=True)
class Interruption:
    """Whether a person wants an end."""

    came: bool = False


@contextmanager
def heeded() -> Iterator[Interruption]:
    """Note SIGINT rather than raise KeyboardInterrupt; whoever waits for threads shall, and look each time it wakes.

    Raised amid the bookkeeping of `threading` it breaks that: up to Python 3.12 a thread whose `join` it ends counts as
    ended, and an `Event` whose `wait` it ends may release a lock that it doesn't hold. Away from the main thread, which
    alone hears of signals, this does nothing.
    """
    interruption = Interruption()

    def note(*_: object) -> None:
        interruption.came = True

    if threading.current_thread() is not threading.main_thread():
        yield interruption
        return
    before = signal.signal(signal.SIGINT, note)
    try:
        yield interruption
    finally:
        signal.signal(signal.SIGINT, before)
