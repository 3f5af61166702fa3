"""Tensors of a scheduler whose values checks compare on the host.

Each look at a value there waits for the device. So they are copied together, and whoever asks waits for the copy alone,
not for what the device was given after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import accumulate
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:  # torch takes seconds to import, and a command line that is refused needs none
    from torch import Tensor, device

ARRIVED = 1
"""What a copy ends with: after a fault of the device, whether it was there before."""


class Copy:
    """Values of integer tensors, flat, on their way: one transfer where all are on a GPU."""

    def __init__(self, *tensors: Tensor) -> None:
        """Begin; on the emulated device the values are there at once."""
        self._ends = list(accumulate(tensor.numel() for tensor in tensors))
        self._values: list[int] | None = None
        if tensors and all(tensor.is_cuda for tensor in tensors):
            self._arrive = self._begin(tensors)
        else:
            self._values = [value for tensor in tensors for value in tensor.reshape(-1).tolist()]

    def values(self, place: int) -> list[int]:
        """Those of one of the tensors, by its place; waits for the copy, and raises what the device does."""
        if self._values is None:
            self._values = self._arrive()
        return self._values[self._ends[place - 1] if place else 0 : self._ends[place]]

    def _begin(self, tensors: tuple[Tensor, ...]) -> Callable[[], list[int]]:
        import torch  # whoever made the tensors has

        flat = [tensor.reshape(-1).long() for tensor in tensors]  # of several dtypes each would be a launch of its own
        everything = torch.cat([*flat, _arrived(tensors[0].device)])
        host = torch.empty(len(everything), dtype=everything.dtype, pin_memory=True)
        host[-1] = not ARRIVED
        host.copy_(everything, non_blocking=True)
        done = torch.cuda.Event()  # type: ignore[no-untyped-call]
        done.record()

        def arrive() -> list[int]:
            try:
                done.synchronize()
            except Exception:  # a later fault spoils no copy that was there before
                if host[-1] != ARRIVED:
                    raise
            values: list[int] = host.tolist()
            return values

        return arrive


@cache
def _arrived(device: device) -> Tensor:
    import torch

    return torch.tensor([ARRIVED], device=device)


def on_host(*tensors: Tensor) -> list[list[int]]:
    """The values of integer tensors, flat."""
    copy = Copy(*tensors)
    return [copy.values(place) for place in range(len(tensors))]


@dataclass(slots=True)
class Fetched:
    """An observation some of whose tensors are compared on the host."""

    TOGETHER: ClassVar[tuple[str, ...]] = ()
    """Their names: whoever asks for one has all of them fetched that can be had."""
    _values: dict[str, Callable[[], list[int]]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def values(self, name: str) -> list[int]:
        """Those of one of the tensors, flat; of one that is None, none."""
        if name not in self._values:
            fetch(self)
        if name not in self._values:  # who asks for one that can't be had hears why
            self._values[name] = partial(Copy(getattr(self, name)).values, 0)
        return self._values[name]()

    def tensors(self) -> Iterator[tuple[str, Tensor | None]]:
        """Those that haven't been fetched; whoever asks for one that can't be had will hear of it."""
        for name in self.TOGETHER:
            if name not in self._values:
                with suppress(Exception):
                    yield name, getattr(self, name)


def fetch(*observations: Fetched) -> None:
    """Begin to copy what all of them have, as it is now."""
    wanted = [(seen, name, tensor) for seen in observations for name, tensor in seen.tensors()]
    copy = Copy(*(tensor for *_, tensor in wanted if tensor is not None))
    place = 0
    for seen, name, tensor in wanted:
        if tensor is None:
            seen._values[name] = list
        else:
            seen._values[name] = partial(copy.values, place)
            place += 1
