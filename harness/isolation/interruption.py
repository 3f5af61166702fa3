"""Ctrl-C as a wish that is asked for now and then, in place of an exception that comes amid anything."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

TICK_SECONDS = 0.2
"""How often whoever waits shall look."""
Stopped = Callable[[], bool]
"""Whether whoever works shall end."""


@dataclass(slots=True)
class Interruption:
    """Whether a person wants an end."""

    came: bool = False


@contextmanager
def heeded() -> Iterator[Interruption]:
    """Note SIGINT rather than raise KeyboardInterrupt; whoever waits for threads shall, and look each time it wakes.

    Raised amid the bookkeeping of `threading` it breaks that: up to Python 3.12 a thread whose `join` it ends counts as
    ended, and an `Event` whose `wait` it ends may release a lock that it doesn't hold. Nothing is noted where SIGINT is
    ignored, as in a shell script's background, or away from the main thread, which alone hears of signals.
    """
    interruption = Interruption()

    def note(*_: object) -> None:
        interruption.came = True

    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before in (signal.SIG_IGN, None):
        yield interruption
        return
    signal.signal(signal.SIGINT, note)
    try:
        yield interruption
    finally:
        signal.signal(signal.SIGINT, before)
