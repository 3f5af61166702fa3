"""What checks have yet to look at: each look at a GPU waits for it, so that several are taken together."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import torch

from harness.observation import Fetched, fetch


class Later:
    """Launches and replays, until the next forward, which is on their stream, or until their step's result is there."""

    def __init__(self) -> None:
        self._waiting: list[tuple[int, Fetched, Callable[[], None]]] = []

    def add(self, step: int, seen: Fetched, look: Callable[[], None]) -> None:
        """Something seen at a step, and how the checks look at it; its tensors must stay as they are."""
        self._waiting.append((step, seen, look))

    def settle(self, also: Fetched | None = None, until: int | None = None) -> None:
        """Let the checks look, in order, all fetched in one transfer, with what they look at next.

        With `until` only at what was seen up to that step. To be called before any other look.
        """
        now = [one for one in self._waiting if until is None or one[0] <= until]
        self._waiting = [one for one in self._waiting if until is not None and one[0] > until]
        with suppress(Exception):  # what can't be fetched is the finding of the check that asks for it
            fetch(*(seen for _, seen, _ in now), *([also] if also is not None else []))
        for *_, look in now:
            look()


def copied(value: Any) -> Any:
    """A copy of a tensor that isn't looked at yet; whatever else a patch has put there, as it is.

    Lengths are counted up where they lie, and graph runners share their buffers, so that another step writes over them.
    """
    return value.clone() if isinstance(value, torch.Tensor) else value
