"""Random launches of the Triton helper kernels, with the shapes and dtypes of SGLang's call sites."""

from dataclasses import dataclass, field
from typing import Any

import numpy
import torch

Rng = numpy.random.Generator
POOL_ROWS, POOL_LEN = 12, 700


@dataclass
class Launch:
    """A grid and the kernel's arguments, in order; `pointees` are tensors that an argument holds the addresses of."""

    grid: tuple[int, ...]
    arguments: dict[str, Any]
    pointees: dict[str, list[torch.Tensor]] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)

    def on(self, device: str) -> "Launch":
        """A copy with its own tensors on that device."""
        pointees = {name: [tensor.to(device, copy=True) for tensor in group] for name, group in self.pointees.items()}
        arguments = {
            name: value.to(device, copy=True) if isinstance(value, torch.Tensor) else value
            for name, value in self.arguments.items()
        }
        for name, group in pointees.items():
            arguments[name] = torch.tensor([tensor.data_ptr() for tensor in group], dtype=torch.uint64, device=device)
        return Launch(self.grid, arguments, pointees, self.options)

    def tensors(self) -> dict[str, torch.Tensor]:
        """Everything that the launch may have written."""
        own = {n: v.cpu() for n, v in self.arguments.items() if isinstance(v, torch.Tensor) and n not in self.pointees}
        return own | {f"{n}[{i}]": t.cpu() for n, group in self.pointees.items() for i, t in enumerate(group)}


def ints(values: Any, dtype: torch.dtype = torch.int64) -> torch.Tensor:
    return torch.as_tensor(numpy.asarray(values)).to(dtype)


def blank(count: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
    return torch.full((count,), -1, dtype=dtype)


def power_of_two(value: int) -> int:
    return 1 << (value - 1).bit_length()


def batch_size(rng: Rng) -> int:
    return int(rng.integers(1, POOL_ROWS))


def pool(rng: Rng) -> torch.Tensor:
    return ints(rng.permutation(POOL_ROWS * POOL_LEN).reshape(POOL_ROWS, POOL_LEN), torch.int32)


def rows(rng: Rng, batch: int) -> torch.Tensor:
    return ints(rng.permutation(POOL_ROWS)[:batch])


def starts_of(lengths: Any) -> torch.Tensor:
    return ints(numpy.concatenate([[0], numpy.cumsum(lengths)]), torch.int32)
