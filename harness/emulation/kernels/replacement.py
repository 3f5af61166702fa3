"""Stand-ins for Triton kernels: launched like them, `kernel[grid](...)`, computed by a Python function."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from harness.emulation.opaque import opaque

Grid = tuple[int, ...]
Reference = Callable[..., None]
"""Takes the grid, then the kernel's parameters under the kernel's names."""

LAUNCH_OPTIONS = frozenset({"num_warps", "num_stages", "num_ctas", "maxnreg", "launch_pdl"})
"""Keyword arguments that a launch takes beside the kernel's own: how to compile it, not what it computes."""


class TritonReference:
    """Replaces a `triton.jit` kernel: `stand_in[grid](*args, **kwargs)` calls `reference(grid, *args, **kwargs)`.

    While a graph is captured, the launch is recorded whole. `kernel` keeps the kernel that was replaced.
    """

    def __init__(self, kernel: Any, reference: Reference) -> None:
        self.kernel = kernel
        self.reference = reference
        self._run = opaque(reference)

    def __getitem__(self, grid: Grid) -> Callable[..., None]:
        return partial(self._launch, grid)

    def __repr__(self) -> str:
        return f"TritonReference({self.reference.__name__})"

    def _launch(self, grid: Grid, *args: Any, **kwargs: Any) -> None:
        self._run(grid, *args, **{name: value for name, value in kwargs.items() if name not in LAUNCH_OPTIONS})


@dataclass(frozen=True, slots=True)
class ReplacedKernel:
    """The Triton kernel that `module` holds as `attribute`, and what computes it instead."""

    module: str
    attribute: str
    reference: Reference

    def install(self) -> None:
        """Import the module and put the stand-in in; again, nothing."""
        module = importlib.import_module(self.module)
        kernel = getattr(module, self.attribute)
        if not isinstance(kernel, TritonReference):
            setattr(module, self.attribute, TritonReference(kernel, self.reference))


@dataclass(frozen=True, slots=True)
class ReplacedFunction:
    """The plain function around Triton kernels that `module` holds as `attribute`, and what computes it instead."""

    module: str
    attribute: str
    reference: Reference

    def install(self) -> None:
        """Import the module and put the reference in."""
        module = importlib.import_module(self.module)
        assert hasattr(module, self.attribute), f"{self.module} has no {self.attribute}"
        setattr(module, self.attribute, self.reference)
