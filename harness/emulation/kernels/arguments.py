"""Checks of kernel arguments, and views of memory as a kernel sees it.

A CUDA kernel gets an address and trusts it: a wrong dtype is misread and an index past the end lands in another
tensor, silently. The references raise instead, since such a call is a bug of the caller's in any case.
"""

from typing import Any

import numpy
import numpy.typing
import torch

Array = numpy.typing.NDArray[Any]


def expect(name: str, tensor: torch.Tensor, dtype: torch.dtype, dimensions: int) -> None:
    """Raise unless `tensor` has this dtype and number of dimensions and is contiguous."""
    if tensor.dtype != dtype:
        raise RuntimeError(f"Expected '{name}' to be of type {dtype}, got {tensor.dtype}")
    if tensor.dim() != dimensions:
        raise RuntimeError(f"Expected '{name}' to have {dimensions} dimensions, got shape {tuple(tensor.shape)}")
    if not tensor.is_contiguous():
        raise RuntimeError(f"Expected '{name}' to be contiguous, got strides {tensor.stride()}")


def expect_shape(name: str, tensor: torch.Tensor, shape: tuple[int, ...]) -> None:
    """Raise unless `tensor` has exactly this shape."""
    if tuple(tensor.shape) != shape:
        raise RuntimeError(f"Expected '{name}' to have shape {shape}, got {tuple(tensor.shape)}")


def pointed(tensor: torch.Tensor) -> torch.Tensor:
    """All of the storage from `tensor`'s first element on, as one flat tensor.

    What a kernel can reach from the tensor's address: the length of a Python slice is no bound to it. SGLang relies on
    this where captured metadata holds slices whose length was computed from the fill values of the capture.
    """
    length = tensor.untyped_storage().nbytes() // tensor.element_size() - tensor.storage_offset()
    return tensor.as_strided((length,), (1,))


def memory(tensor: torch.Tensor) -> Array:
    """`pointed`, as a numpy array on the same memory (writes go through); bool reads as uint8."""
    flat = pointed(tensor)
    return (flat.view(torch.uint8) if flat.dtype == torch.bool else flat).numpy()
