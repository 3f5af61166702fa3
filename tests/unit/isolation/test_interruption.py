"""Ctrl-C is noted where it is to be heeded, and answered as before elsewhere."""

import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.commands import children
from harness.errors import UsageError
from harness.isolation.interruption import Stopped, heeded


@pytest.fixture(autouse=True)
def handler() -> Iterator[None]:
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


def test_noted_and_then_raised_again() -> None:
    with heeded() as outer:
        with heeded() as inner:
            signal.raise_signal(signal.SIGINT)
        assert (outer.came, inner.came) == (False, True)
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_ignored_stays_ignored() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with heeded() as interruption:
        signal.raise_signal(signal.SIGINT)
    assert not interruption.came
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_nothing_away_from_the_main_thread() -> None:
    def look() -> bool:
        with heeded() as interruption:
            return interruption.came

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(look).result() is False


def test_items_of_a_command_end() -> None:
    """The one at work, which would never end of itself, and those that wait."""
    begun = []

    def work(item: int, stopped: Stopped) -> None:
        begun.append(item)
        signal.raise_signal(signal.SIGINT)
        while not stopped():
            pass

    with pytest.raises(KeyboardInterrupt):
        list(children.side_by_side(work, range(100), at_once=1))
    assert begun == [0]


def test_an_item_that_raises_ends_the_others() -> None:
    """Those at work beside it would never end of themselves."""

    def work(item: int, stopped: Stopped) -> None:
        if item == 0:
            raise UsageError("the disk is full")
        while not stopped():
            pass

    with pytest.raises(UsageError, match="the disk is full"):
        list(children.side_by_side(work, range(100), at_once=2))
