"""Kernels written in Python, as single nodes of an emulated CUDA graph.

A reference marked `opaque` runs as it is while no graph is captured. While one is, the call is recorded as one node,
with the tensor objects that it was given, and its inner operations aren't recorded: at replay the same function runs
again on the same tensors, as a kernel launch in a CUDA graph reads the same addresses. So a reference must write its
results in place, into tensors that it was given, or return tensors that it allocated (at replay those are copied into
the captured ones). It may read values on the host freely, since a kernel does.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import torch
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_map

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Node:
    """One node of an emulated graph: a call, and what it returned at capture.

    Tensors are aliases of the captured ones, with their shape of then: an in-place view (`unsqueeze_`) may change that
    of the captured tensor later.
    """

    call: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    output: Any

    @classmethod
    def of(cls, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> "Node":
        """The node of a call that was just made."""
        return cls(call, *(tree_map(_alias, part) for part in (args, kwargs, output)))


def _alias(leaf: Any) -> Any:
    return leaf.detach() if isinstance(leaf, torch.Tensor) else leaf


class Recording:
    """The graph under capture, if any; one at a time, as one stream captures at a time."""

    nodes: list[Node] | None = None

    @classmethod
    def active(cls) -> bool:
        """Whether a graph is being captured now."""
        return cls.nodes is not None


def opaque(kernel: Callable[P, R]) -> Callable[P, R]:
    """Mark a Python function as one kernel: recorded whole while a graph is captured."""

    @wraps(kernel)
    def launch(*args: P.args, **kwargs: P.kwargs) -> R:
        nodes = Recording.nodes
        if nodes is None:
            return kernel(*args, **kwargs)
        Recording.nodes = None  # what the kernel does inside isn't part of the graph
        try:
            with _disable_current_modes():
                output = kernel(*args, **kwargs)
        finally:
            Recording.nodes = nodes
        nodes.append(Node.of(kernel, args, kwargs, output))
        return output

    return launch
