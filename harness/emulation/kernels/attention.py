"""References for the attention kernels of SGLang's Triton backend.

Sources: `sglang/srt/layers/attention/triton_ops/{decode,extend}_attention.py`; called by
`sglang/srt/layers/attention/triton_backend.py`. All requests of a batch are padded to one shape and attend in one
call, which was the fastest of six formulations at the sizes of the emulation. Scores and sums are float32.
"""

import math

import numpy
import torch
from torch.nn.functional import scaled_dot_product_attention

from harness.emulation.kernels.arguments import Array, memory
from harness.emulation.opaque import opaque

QUERY_BLOCK = 128
"""Query rows per program of the extend kernel, on Hopper: its grid covers max_len_extend rounded up to this."""


@opaque
def decode_attention_fwd(
    q: torch.Tensor,
    k_buffer: torch.Tensor,
    v_buffer: torch.Tensor,
    o: torch.Tensor,
    kv_indptr: torch.Tensor,
    kv_indices: torch.Tensor,
    attn_logits: torch.Tensor,
    attn_lse: torch.Tensor,
    num_kv_splits: torch.Tensor,
    max_kv_splits: int,
    sm_scale: float,
    k_scale: float,
    v_scale: float,
    logit_cap: float = 0.0,
    sinks: torch.Tensor | None = None,
    xai_temperature_len: int = -1,
    has_mla: bool = False,
    use_pdl: bool = False,
) -> None:
    """One query token per row over its indexed KV slots (`triton_ops.decode_attention.decode_attention_fwd`).

    q [rows, heads, head_dim]; k_buffer, v_buffer [slots, kv_heads, head_dim]; row r reads the slots
    kv_indices[kv_indptr[r]:kv_indptr[r + 1]]. Writes o [rows, heads, head_dim]; a row of no slots becomes NaN (0 / 0).
    Pointer semantics: the lengths of the indices' tensors are no bound.

    attn_logits, attn_lse, num_kv_splits and use_pdl only say how the kernel splits its work; the scratch buffers are
    not written here.
    """
    _reject_options(sinks, xai_temperature_len)
    if has_mla:
        raise NotImplementedError("decode_attention_fwd: has_mla is not emulated")
    rows = q.shape[0]
    assert max_kv_splits == attn_logits.shape[2]
    assert rows <= kv_indptr.shape[0] - 1
    assert rows <= attn_logits.shape[0]
    if rows == 0:
        return
    slots, live = _slots(kv_indptr, kv_indices, rows)
    k, v = _gather(k_buffer, slots), _gather(v_buffer, slots)
    out = _attend(q[:, None].float(), k, v, live[:, None], sm_scale * k_scale, logit_cap)
    o.copy_(out[:, 0] if v_scale == 1.0 else out[:, 0] * v_scale)


@opaque
def extend_attention_fwd(
    q_extend: torch.Tensor,
    k_extend: torch.Tensor,
    v_extend: torch.Tensor,
    o_extend: torch.Tensor,
    k_buffer: torch.Tensor,
    v_buffer: torch.Tensor,
    qo_indptr: torch.Tensor,
    kv_indptr: torch.Tensor,
    kv_indices: torch.Tensor,
    custom_mask: torch.Tensor | None,
    is_causal: bool,
    mask_indptr: torch.Tensor | None,
    max_len_extend: int,
    k_scale: float,
    v_scale: float,
    sm_scale: float | None = None,
    logit_cap: float = 0.0,
    skip_prefix_custom_mask: bool = True,
    sliding_window_size: int = -1,
    sinks: torch.Tensor | None = None,
    window_kv_offsets: torch.Tensor | None = None,
    xai_temperature_len: int = -1,
) -> None:
    """New tokens of each request over its cached prefix and each other (`triton_ops.extend_attention`).

    q_extend, k_extend, v_extend [tokens, heads or kv_heads, head_dim]: request b owns the rows
    qo_indptr[b]:qo_indptr[b + 1]; its prefix lies in the slots kv_indices[kv_indptr[b]:kv_indptr[b + 1]] of k_buffer
    and v_buffer, to which alone k_scale and v_scale apply. custom_mask (bool or uint8, flat, from mask_indptr[b] a
    [new, prefix + new] block; with a sliding window, [new, window_kv_offsets[b] + prefix + new]) replaces is_causal.
    Writes o_extend, only at rows owned by a request. Pointer semantics: the lengths of the indices' and mask's tensors
    are no bound.
    """
    _reject_options(sinks, xai_temperature_len)
    starts = qo_indptr.numpy()
    new = numpy.diff(starts)
    longest = int(new.max(initial=0))
    if longest <= 0:
        return
    slots, in_prefix = _slots(kv_indptr, kv_indices, len(new))
    steps = numpy.arange(longest)
    owned = steps < new[:, None]
    rows = numpy.where(owned, starts[:-1, None] + steps, 0)
    allowed = _allowed(in_prefix, owned, is_causal and custom_mask is None, sliding_window_size)
    if custom_mask is not None:
        assert mask_indptr is not None
        offsets = None if sliding_window_size <= 0 else window_kv_offsets
        custom = _custom_mask(custom_mask, mask_indptr, offsets, in_prefix, owned)
        prefix = 0 if not skip_prefix_custom_mask else in_prefix.shape[1]
        allowed[:, :, prefix:] &= custom[:, :, prefix:]
    k = torch.cat([_scaled(_gather(k_buffer, slots), k_scale), _gather(k_extend, rows)], 1)
    v = torch.cat([_scaled(_gather(v_buffer, slots), v_scale), _gather(v_extend, rows)], 1)
    out = _attend(_gather(q_extend, rows), k, v, allowed, sm_scale or q_extend.shape[-1] ** -0.5, logit_cap)
    written = owned & (steps < -(-max_len_extend // QUERY_BLOCK) * QUERY_BLOCK)
    o_extend[torch.from_numpy(rows[written])] = out[torch.from_numpy(written)].to(o_extend.dtype)


def _reject_options(sinks: torch.Tensor | None, xai_temperature_len: int) -> None:
    if sinks is not None:
        raise NotImplementedError("attention: sinks are not emulated")
    if xai_temperature_len > 0:
        raise NotImplementedError("attention: xai_temperature_len is not emulated")


def _slots(kv_indptr: torch.Tensor, kv_indices: torch.Tensor, rows: int) -> tuple[Array, Array]:
    """Each row's KV slots, padded with slot 0 to one length of at least 1, and a mask of the live ones."""
    bounds, indices = kv_indptr.numpy()[: rows + 1].astype(numpy.int64), memory(kv_indices)
    if bounds.max() > indices.size:
        raise IndexError(f"kv_indptr ends at {bounds.max()}, past the {indices.size} elements of kv_indices")
    lengths = numpy.diff(bounds)
    steps = numpy.arange(max(int(lengths.max()), 1))
    live = steps < lengths[:, None]
    slots = numpy.zeros(live.shape, dtype=numpy.int64)
    slots[live] = indices[(bounds[:-1, None] + steps)[live]]
    return slots, live


def _gather(buffer: torch.Tensor, index: Array) -> torch.Tensor:
    """[*index.shape, heads, head_dim] float32 of a buffer [slots, heads, head_dim]."""
    flat = buffer.flatten(1).index_select(0, torch.from_numpy(index.reshape(-1)))
    return flat.view(*index.shape, *buffer.shape[1:]).float()


def _scaled(gathered: torch.Tensor, scale: float) -> torch.Tensor:
    return gathered if scale == 1.0 else gathered.mul_(scale)


def _allowed(in_prefix: Array, owned: Array, causal: bool, window: int) -> Array:
    """[bs, new, prefix + new]: which keys each new token may see, custom masks aside."""
    query = numpy.arange(owned.shape[1])[:, None]
    new = numpy.broadcast_to(owned[:, None, :], (*owned.shape, owned.shape[1]))
    prefix = numpy.broadcast_to(in_prefix[:, None, :], (*owned.shape, in_prefix.shape[1]))
    if causal:
        new = new & (query >= query.T)
    if window > 0:
        new = new & (query <= query.T + window)
        position = in_prefix.sum(1)[:, None, None] + query
        prefix = prefix & (position <= numpy.arange(in_prefix.shape[1]) + window)
    return numpy.concatenate([prefix, new], axis=2)


def _custom_mask(
    custom_mask: torch.Tensor,
    mask_indptr: torch.Tensor,
    window_kv_offsets: torch.Tensor | None,
    in_prefix: Array,
    owned: Array,
) -> Array:
    """[bs, new, prefix + new] of the flat custom mask; anything where the request has no such row or column."""
    flat, batch = memory(custom_mask), len(owned)
    prefix, new = in_prefix.sum(1), owned.sum(1)
    skipped = numpy.zeros(batch, dtype=numpy.int64)
    if window_kv_offsets is not None:
        skipped = window_kv_offsets.numpy()[:batch].astype(numpy.int64)
    in_request = numpy.arange(in_prefix.shape[1])[None].repeat(batch, 0)
    after_prefix = prefix[:, None] + numpy.arange(owned.shape[1])
    column = skipped[:, None] + numpy.concatenate([in_request, after_prefix], axis=1)
    row = numpy.arange(owned.shape[1])[None, :] * (skipped + prefix + new)[:, None]
    index = mask_indptr.numpy()[:batch, None, None] + row[:, :, None] + column[:, None, :]
    mask: Array = flat[numpy.minimum(index, flat.size - 1)].astype(bool)
    return mask


def _attend(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, allowed: Array, scale: float, logit_cap: float
) -> torch.Tensor:
    """Softmax attention: q [bs, new, heads, dim], k and v [bs, keys, kv_heads, dim], allowed [bs, new, keys].

    Query heads that share a KV head become rows of one matrix, so that K and V needn't be repeated.
    """
    batch, new, heads, _ = q.shape
    kv_heads = k.shape[2]
    group = heads // kv_heads
    q = q.view(batch, new, kv_heads, group, -1).permute(0, 2, 3, 1, 4).reshape(batch, kv_heads, group * new, -1)
    mask = torch.from_numpy(allowed)[:, None].repeat(1, 1, group, 1)
    k, v = k.transpose(1, 2), v.transpose(1, 2)
    if logit_cap > 0:
        scores = logit_cap * torch.tanh(q @ k.transpose(2, 3) * (scale / logit_cap))
        out = scores.masked_fill(~mask, -math.inf).softmax(-1) @ v
    else:
        out = scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale)
    out = out.view(batch, kv_heads, group, new, -1).permute(0, 3, 1, 2, 4).reshape(batch, new, heads, -1)
    blind = ~allowed.any(-1)
    if blind.any():  # torch gives zeros where the kernel divides zero by zero
        out[torch.from_numpy(blind)] = math.nan
    return out
