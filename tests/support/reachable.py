"""Every tensor that can be reached from an object, by path."""

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import torch

DEPTH = 7
LEAVES = (str, bytes, int, float, bool, type(None), type, ModuleType, torch.nn.Module)


def reachable_tensors(root: object) -> dict[str, torch.Tensor]:
    """Tensors in attributes, dictionaries, lists and tuples, to a depth of 7; model weights left out."""
    seen: set[int] = set()
    found: dict[str, torch.Tensor] = {}

    def visit(value: Any, path: str, depth: int) -> None:
        if id(value) in seen or depth > DEPTH or isinstance(value, LEAVES):
            return
        seen.add(id(value))
        if isinstance(value, torch.Tensor):
            found[path] = value
            return
        for name, part in _parts(value):
            visit(part, f"{path}.{name}", depth + 1)

    visit(root, "", 0)
    return found


def _parts(value: Any) -> Iterator[tuple[object, Any]]:
    if isinstance(value, dict):
        yield from list(value.items())
    elif isinstance(value, list | tuple):
        yield from enumerate(value)
    else:
        yield from list(getattr(value, "__dict__", {}).items())
