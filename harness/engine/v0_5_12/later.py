"""What checks have yet to look at: each look at a GPU waits for it, so that several are taken together, and later."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import torch

from harness.fetched import Fetched, fetch


class Later:
    """Launches and replays wait for the next forward, which is on their stream, or for their step's result.

    A forward is copied before it runs and looked at when it was launched: by then the device is at work on it.
    """

    def __init__(self) -> None:
        self._waiting: list[tuple[int, Fetched, Callable[[], None]]] = []
        self._begun: list[Callable[[], None]] = []

    def add(self, step: int, seen: Fetched, look: Callable[[], None]) -> None:
        """Something seen at a step, and how the checks look at it; its tensors must stay as they are until `begin`."""
        self._waiting.append((step, seen, look))

    def begin(self, until: int | None = None) -> None:
        """Begin to copy all that waits, in one transfer; with `until` only what was seen up to that step."""
        now = [one for one in self._waiting if until is None or one[0] <= until]
        self._waiting = [one for one in self._waiting if until is not None and one[0] > until]
        with suppress(Exception):  # what can't be fetched is the finding of the check that asks for it
            fetch(*(seen for _, seen, _ in now))
        self._begun += [look for *_, look in now]

    def finish(self) -> None:
        """Let the checks look at all that was begun, in order."""
        looks, self._begun = self._begun, []
        for look in looks:
            look()

    def settle(self, until: int | None = None) -> None:
        """Both at once. To be called before any other look."""
        self.begin(until)
        self.finish()


def copied(value: Any) -> Any:
    """A copy of a tensor that isn't looked at yet; whatever else a patch has put there, as it is.

    Lengths are counted up where they lie, and graph runners share their buffers, so that another step writes over them.
    """
    return value.clone() if isinstance(value, torch.Tensor) else value
