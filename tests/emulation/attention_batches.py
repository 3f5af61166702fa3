"""Random batches for the attention kernels, with the shapes and dtypes of SGLang's Triton backend.

Options are what the kernels are compiled for, so a test on a GPU draws few of them and many batches for each.
"""

from dataclasses import dataclass
from typing import Any

import numpy
import torch

SLOTS = 400
UNTOUCHED = 77.0
HEADS = ((4, 4), (4, 2), (8, 1))

Batch = dict[str, Any]
Rng = numpy.random.Generator


@dataclass(frozen=True)
class Options:
    """The shape of a model's attention, and how the extend kernel masks; `window` is -1 for none."""

    dtype: torch.dtype
    heads: int
    kv_heads: int
    dim: int
    logit_cap: float
    masked: bool
    skip_prefix_mask: bool
    causal: bool
    window: int
    mask_dtype: torch.dtype
    bounds_dtype: torch.dtype


def random_options(rng: Rng, dtype: torch.dtype) -> Options:
    heads, kv_heads = HEADS[int(rng.integers(len(HEADS)))]
    return Options(
        dtype=dtype,
        heads=heads,
        kv_heads=kv_heads,
        dim=int(rng.choice([32, 64])) if dtype == torch.float32 else int(rng.choice([64, 128])),
        logit_cap=float(rng.choice([0.0, 20.0])),
        masked=bool(rng.random() < 0.6),
        skip_prefix_mask=bool(rng.random() < 0.5),
        causal=bool(rng.random() < 0.8),
        window=int(rng.integers(1, 60)) if rng.random() < 0.3 else -1,
        mask_dtype=torch.bool if rng.random() < 0.5 else torch.uint8,
        bounds_dtype=torch.int64 if rng.random() < 0.5 else torch.int32,
    )


def decode_batch(rng: Rng, options: Options, longest: int = 200, largest: int = 16) -> Batch:
    """Arguments of `decode_attention_fwd`, by name."""
    rows = int(rng.integers(1, largest + 1))
    lengths = rng.integers(1, longest + 1, rows)
    return {
        "q": _normal(rng, (rows, options.heads, options.dim), options.dtype),
        **_buffers(rng, options),
        "o": torch.full((rows, options.heads, options.dim), UNTOUCHED, dtype=options.dtype),
        "kv_indptr": _bounds(lengths, torch.int32),
        "kv_indices": torch.from_numpy(rng.integers(0, SLOTS, int(lengths.sum()) + 4)),
        "attn_logits": torch.zeros(rows, options.heads, 8, options.dim),
        "attn_lse": torch.zeros(rows, options.heads, 8),
        "num_kv_splits": torch.from_numpy(rng.integers(1, 9, rows)).int(),
        "max_kv_splits": 8,
        "sm_scale": options.dim**-0.5,
        "k_scale": float(rng.choice([1.0, 0.7])),
        "v_scale": float(rng.choice([1.0, 0.7])),
        "logit_cap": options.logit_cap,
    }


def extend_batch(rng: Rng, options: Options, longest: int = 200, largest: int = 6, longest_new: int = 20) -> Batch:
    """Arguments of `extend_attention_fwd`, by name; every token sees at least itself."""
    batch = int(rng.integers(1, largest + 1))
    prefix, new = rng.integers(0, longest, batch), rng.integers(1, longest_new, batch)
    if rng.random() < 0.4:
        new[:] = new[0]
    if rng.random() < 0.2:
        prefix[:] = 0
    tokens, kv_shape = int(new.sum()), (int(new.sum()), options.kv_heads, options.dim)
    offsets = rng.integers(0, 9, batch) if options.window > 0 else numpy.zeros(batch, dtype=numpy.int64)
    return {
        "q_extend": _normal(rng, (tokens, options.heads, options.dim), options.dtype),
        "k_extend": _normal(rng, kv_shape, options.dtype),
        "v_extend": _normal(rng, kv_shape, options.dtype),
        "o_extend": torch.full((tokens + 2, options.heads, options.dim), UNTOUCHED, dtype=options.dtype),
        **_buffers(rng, options),
        "qo_indptr": _bounds(new, options.bounds_dtype),
        "kv_indptr": _bounds(prefix, torch.int32),
        "kv_indices": torch.from_numpy(rng.integers(0, SLOTS, int(prefix.sum()) + 4)),
        "custom_mask": _mask(rng, prefix, new, offsets).to(options.mask_dtype) if options.masked else None,
        "is_causal": options.causal,
        "mask_indptr": _bounds(new * (offsets + prefix + new), torch.int64) if options.masked else None,
        "max_len_extend": int(new.max()),
        "k_scale": float(rng.choice([1.0, 0.7])),
        "v_scale": float(rng.choice([1.0, 0.7])),
        "sm_scale": options.dim**-0.5 if rng.random() < 0.5 else None,
        "logit_cap": options.logit_cap,
        "skip_prefix_custom_mask": options.skip_prefix_mask,
        "sliding_window_size": options.window,
        "window_kv_offsets": torch.from_numpy(offsets).int() if options.window > 0 else None,
    }


def on(batch: Batch, device: str) -> Batch:
    """A copy with its own tensors on that device."""
    return {
        name: value.to(device, copy=True) if isinstance(value, torch.Tensor) else value for name, value in batch.items()
    }


def _normal(rng: Rng, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    return torch.from_numpy(rng.standard_normal(shape, dtype=numpy.float32)).to(dtype)


def _buffers(rng: Rng, options: Options) -> Batch:
    shape = (SLOTS, options.kv_heads, options.dim)
    return {name: _normal(rng, shape, options.dtype) for name in ("k_buffer", "v_buffer")}


def _bounds(lengths: numpy.ndarray, dtype: torch.dtype) -> torch.Tensor:
    return torch.from_numpy(numpy.concatenate([[0], numpy.cumsum(lengths)])).to(dtype)


def _mask(rng: Rng, prefix: numpy.ndarray, new: numpy.ndarray, offsets: numpy.ndarray) -> torch.Tensor:
    blocks = []
    for before, count, offset in zip(prefix, new, offsets, strict=True):
        block = rng.random((count, offset + before + count)) < 0.6
        block[numpy.arange(count), offset + before + numpy.arange(count)] = True
        blocks.append(block.reshape(-1))
    return torch.from_numpy(numpy.concatenate([*blocks, numpy.zeros(5, dtype=bool)]))
