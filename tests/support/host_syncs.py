"""Operations that need a tensor's values on the host: forbidden while a CUDA graph is captured, emulated or real."""

from collections.abc import Callable

import torch

HOST_SYNCS: dict[str, Callable[[torch.Tensor], object]] = {
    "item": lambda tensor: tensor.sum().item(),
    "bool": lambda tensor: bool(tensor.any()),
    "tolist": lambda tensor: tensor.tolist(),
    "cpu": lambda tensor: tensor.cpu(),
    "nonzero": lambda tensor: tensor.nonzero(),
    "boolean mask": lambda tensor: tensor[tensor > 0],
    "assignment of several values by mask": lambda tensor: tensor.__setitem__(tensor > 0, tensor * 2),
    "unique": lambda tensor: torch.unique(tensor),
    "unique consecutive": lambda tensor: torch.unique_consecutive(tensor),
    "repeat by counts": lambda tensor: tensor.repeat_interleave(tensor.to(torch.int64)),
    "bincount": lambda tensor: torch.bincount(tensor.to(torch.int64)),
}

ALLOWED: dict[str, Callable[[torch.Tensor], object]] = {
    "assignment of one value by mask": lambda tensor: tensor.__setitem__(tensor > 0, 2.0),
    "masked_fill": lambda tensor: tensor.masked_fill(tensor > 0, 2.0),
    "where": lambda tensor: torch.where(tensor > 0, tensor, -tensor),
    "index by positions": lambda tensor: tensor[torch.zeros_like(tensor, dtype=torch.int64)],
    "repeat": lambda tensor: tensor.repeat_interleave(2),
    "topk": lambda tensor: tensor.topk(2),
}
