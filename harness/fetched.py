"""Tensors of a scheduler whose values checks compare on the host.

Each look at a value there waits for the device. So they are copied together, and whoever asks waits for the copy alone,
not for what the device was given after it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:  # torch takes seconds to import, and a command line that is refused needs none
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor, device
    from torch.cuda import Stream

    Values = NDArray[np.int64]

ARRIVED = 1
"""What a copy ends with: after a fault of the device, whether it was there before."""


class Copy:
    """Values of integer tensors, flat, on their way: one launch and one transfer where all are on a GPU."""

    def __init__(self, *tensors: Tensor) -> None:
        """Begin; on the emulated device the values are there at once."""
        import torch  # whoever made the tensors has

        flat = [_words(tensor) for tensor in tensors]
        self._wide = [tensor.dtype is not torch.int32 for tensor in tensors]
        self._ends = list(accumulate(map(len, flat)))
        self._words: NDArray[np.int32] | None = None
        if flat and all(tensor.is_cuda for tensor in flat):
            everything = torch.cat([*flat, _arrived(flat[0].device)])
            self._arrive = _sent(everything)
        elif flat:
            self._words = torch.cat([tensor.cpu() for tensor in flat]).numpy()

    def values(self, place: int) -> Values:
        """Those of one of the tensors, by its place; waits for the copy, and raises what the device does."""
        import numpy as np  # with torch

        if self._words is None:
            self._words = self._arrive()
        words = self._words[self._ends[place - 1] if place else 0 : self._ends[place]]
        return words.view(np.int64) if self._wide[place] else words.astype(np.int64)


def _words(tensor: Tensor) -> Tensor:
    """Flat, as int32: int64 as two each, since to convert it is a launch of its own."""
    import torch

    flat = tensor if tensor.dim() == 1 else tensor.reshape(-1)
    if flat.dtype is torch.int32:
        return flat
    if flat.dtype is not torch.int64:  # what a patch has put there
        flat = flat.long()
    return flat.contiguous().view(torch.int32)


class _Pinned:
    """Memory of the host that a copy goes to, and the event that says when it is there; used again and again."""

    def __init__(self, size: int) -> None:
        import torch

        self.tensor = torch.empty(size, dtype=torch.int32, pin_memory=True)
        self.words: NDArray[np.int32] = self.tensor.numpy()
        self.done = torch.cuda.Event()  # type: ignore[no-untyped-call]


_spare: list[_Pinned] = []


def _sent(everything: Tensor) -> Callable[[], NDArray[np.int32]]:
    """Begin to copy int32 that ends with ARRIVED; returns what waits for all before that."""
    size = len(everything)
    pinned = _spare.pop() if _spare else _Pinned(size)
    if len(pinned.words) < size:
        pinned = _Pinned(2 * size)
    pinned.words[size - 1] = not ARRIVED
    pinned.tensor[:size].copy_(everything, non_blocking=True)
    pinned.done.record(_stream())

    def arrive() -> NDArray[np.int32]:
        try:
            pinned.done.synchronize()
        except Exception:  # a later fault spoils no copy that was there before
            if pinned.words[size - 1] != ARRIVED:
                raise
            return pinned.words[: size - 1]
        words = pinned.words[: size - 1].copy()
        _spare.append(pinned)
        return words

    return arrive


def _stream() -> Stream:
    """The current one: torch makes an object of it each time that it is asked, which takes longer than to record."""
    import torch

    return _stream_of(torch._C._cuda_getCurrentStream(torch._C._cuda_getDevice()))


@cache
def _stream_of(key: tuple[int, int, int]) -> Stream:
    import torch

    stream_id, device_index, device_type = key
    return torch.cuda.Stream(stream_id=stream_id, device_index=device_index, device_type=device_type)  # type: ignore[no-untyped-call]


@cache
def _arrived(device: device) -> Tensor:
    import torch

    return torch.tensor([ARRIVED], dtype=torch.int32, device=device)


def on_host(*tensors: Tensor) -> list[list[int]]:
    """The values of integer tensors, flat."""
    copy = Copy(*tensors)
    return [copy.values(place).tolist() for place in range(len(tensors))]


@dataclass(slots=True)
class Fetched:
    """An observation some of whose tensors are compared on the host."""

    TOGETHER: ClassVar[tuple[str, ...]] = ()
    """Their names: whoever asks for one has all of them fetched that can be had."""
    _copies: dict[str, tuple[Copy, int] | None] = field(default_factory=dict, init=False, repr=False, compare=False)
    """What has each, and its place there; None for one that is None."""
    _arrays: dict[str, Values] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Those that have been asked for."""

    def values(self, name: str) -> list[int]:
        """Those of one of the tensors, flat; of one that is None, none."""
        values: list[int] = self.array(name).tolist()
        return values

    def array(self, name: str) -> Values:
        """The same as an array, not to be written to."""
        if name not in self._arrays:
            self._arrays[name] = self._array(name)
        return self._arrays[name]

    def _array(self, name: str) -> Values:
        import numpy as np

        if name not in self._copies:
            fetch(self)
        if name not in self._copies:  # who asks for one that can't be had hears why
            self._copies[name] = (Copy(getattr(self, name)), 0)
        found = self._copies[name]
        return np.empty(0, dtype=np.int64) if found is None else found[0].values(found[1])


def fetch(*observations: Fetched) -> None:
    """Begin to copy what all of them have, as it is now; whoever asks for one that can't be had will hear of it."""
    tensors: list[Tensor] = []
    wanted: list[tuple[Fetched, str]] = []
    for seen in observations:
        for name in seen.TOGETHER:
            if name in seen._copies:
                continue
            try:
                tensor = getattr(seen, name)
            except Exception:
                continue
            if tensor is None:
                seen._copies[name] = None
            else:
                tensors.append(tensor)
                wanted.append((seen, name))
    copy = Copy(*tensors)
    for place, (seen, name) in enumerate(wanted):
        seen._copies[name] = (copy, place)
