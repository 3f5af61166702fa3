"""References for the Triton kernels of KV allocation, positions and KV moves, for speed.

Same conventions as `indices.py`. Sources: `sglang/srt/mem_cache/{allocator,common,memory_pool}.py`,
`sglang/srt/model_executor/forward_batch_info.py`, `sglang/srt/layers/attention/triton_backend.py`.
"""

import ctypes
import math

import numpy
import torch

from harness.emulation.kernels.arguments import Array, memory
from harness.emulation.kernels.replacement import Grid


def alloc_extend_kernel(
    grid: Grid,
    pre_lens_ptr: torch.Tensor,
    seq_lens_ptr: torch.Tensor,
    last_loc_ptr: torch.Tensor,
    free_page_ptr: torch.Tensor,
    out_indices: torch.Tensor,
    bs_upper: int,
    page_size: int,
) -> None:
    """Slots for positions [pre_len, seq_len) of each request: the rest of its last page, then free pages in order."""
    out = memory(out_indices)
    at = page = 0
    lengths = zip(
        *(memory(tensor)[: grid[0]].tolist() for tensor in (pre_lens_ptr, seq_lens_ptr, last_loc_ptr)), strict=True
    )
    for pre_len, seq_len, last_loc in lengths:
        pages_before, pages_after = -(-pre_len // page_size), -(-seq_len // page_size)
        old = min(seq_len, pages_before * page_size) - pre_len
        out[at : at + max(old, 0)] = last_loc + 1 + numpy.arange(max(old, 0))
        fresh = numpy.arange(seq_len - pre_len - old)
        pages = _pages(free_page_ptr, page + fresh // page_size)
        out[at + old : at + old + len(fresh)] = pages * page_size + fresh % page_size
        at += seq_len - pre_len
        page += pages_after - pages_before


def alloc_decode_kernel(
    grid: Grid,
    seq_lens_ptr: torch.Tensor,
    last_loc_ptr: torch.Tensor,
    free_page_ptr: torch.Tensor,
    out_indices: torch.Tensor,
    bs_upper: int,
    page_size: int,
) -> None:
    """The slot for position seq_len - 1 of each request: after last_loc, or the first of a free page."""
    batch = grid[0]
    seq_lens, last_loc = memory(seq_lens_ptr)[:batch], memory(last_loc_ptr)[:batch]
    opens_page = -(-seq_lens // page_size) != -(-(seq_lens - 1) // page_size)
    pages = _pages(free_page_ptr, numpy.cumsum(opens_page) - opens_page)
    memory(out_indices)[:batch] = numpy.where(opens_page, pages * page_size, last_loc + 1)


def _pages(free_page_ptr: torch.Tensor, index: Array) -> Array:
    """free_pages[index]; zero past its end, since SGLang launches first and finds out after that memory ran out."""
    free = free_page_ptr.numpy()
    inside = index < len(free)
    pages = numpy.zeros_like(index)
    pages[inside] = free[index[inside]]
    return pages


def get_last_loc_kernel(
    grid: Grid,
    req_to_token: torch.Tensor,
    req_pool_indices_tensor: torch.Tensor,
    prefix_lens_tensor: torch.Tensor,
    result: torch.Tensor,
    num_tokens: int,
    req_to_token_stride: int,
    BLOCK_SIZE: int,
) -> None:
    """The slot of each request's last prefix position, -1 for an empty prefix."""
    rows, lengths = (memory(tensor)[:num_tokens] for tensor in (req_pool_indices_tensor, prefix_lens_tensor))
    index = numpy.where(lengths > 0, rows.astype(numpy.int64) * req_to_token_stride + lengths - 1, 0)
    memory(result)[:num_tokens] = numpy.where(lengths > 0, memory(req_to_token)[index], -1)


def write_req_to_token_pool_triton(
    grid: Grid,
    req_to_token_ptr: torch.Tensor,
    req_pool_indices: torch.Tensor,
    prefix_tensors: torch.Tensor,
    pre_lens: torch.Tensor,
    seq_lens: torch.Tensor,
    extend_lens: torch.Tensor,
    out_cache_loc: torch.Tensor,
    req_to_token_ptr_stride: int,
) -> None:
    """Write each request's cached prefix (int64, by address) and its new slots to its row of req_to_token."""
    table, locations = memory(req_to_token_ptr), memory(out_cache_loc)
    at = 0
    for index in range(grid[0]):
        row = int(req_pool_indices[index]) * req_to_token_ptr_stride
        pre_len, seq_len = int(pre_lens[index]), int(seq_lens[index])
        if pre_len > 0:
            table[row : row + pre_len] = _at_address(int(prefix_tensors[index]), pre_len, numpy.dtype(numpy.int64))
        table[row + pre_len : row + seq_len] = locations[at : at + seq_len - pre_len]
        at += int(extend_lens[index])


def _at_address(address: int, count: int, dtype: numpy.dtype[numpy.generic]) -> Array:
    """`count` elements of the memory at `address`, which the caller keeps alive."""
    block = (ctypes.c_uint8 * (count * dtype.itemsize)).from_address(address)
    elements: Array = numpy.ctypeslib.as_array(block).view(dtype)
    return elements


def copy_all_layer_kv_cache_tiled(
    grid: Grid,
    data_ptrs: torch.Tensor,
    strides: torch.Tensor,
    tgt_loc_ptr: torch.Tensor,
    src_loc_ptr: torch.Tensor,
    num_locs: int,
    num_locs_upper: int,
    BYTES_PER_TILE: int,
) -> None:
    """Copy slots src to tgt in each KV buffer, given by address and bytes a slot: first all reads, then all writes."""
    target, source = memory(tgt_loc_ptr)[:num_locs], memory(src_loc_ptr)[:num_locs]
    slots = int(max(target.max(), source.max())) + 1
    for address, stride in zip(data_ptrs[: grid[0]].tolist(), strides[: grid[0]].tolist(), strict=True):
        buffer = _at_address(address, slots * stride, numpy.dtype(numpy.uint8)).reshape(slots, stride)
        buffer[target] = buffer[source]


def compute_position_kernel(
    grid: Grid,
    positions: torch.Tensor,
    extend_start_loc: torch.Tensor,
    extend_prefix_lens: torch.Tensor,
    extend_seq_lens: torch.Tensor,
    has_prefix: bool,
) -> None:
    """Positions of each request's new tokens, flat, and where each request starts in them."""
    out, starts = memory(positions), memory(extend_start_loc)
    at = 0
    for index, length in enumerate(memory(extend_seq_lens)[: grid[0]].tolist()):
        prefix = int(extend_prefix_lens[index]) if has_prefix else 0
        out[at : at + length] = numpy.arange(prefix, prefix + length)
        starts[index] = at
        at += length


def get_num_kv_splits_triton(
    grid: Grid,
    num_kv_splits_ptr: torch.Tensor,
    seq_lens_ptr: torch.Tensor,
    num_seq: int,
    num_group: int,
    num_head: int,
    num_kv_head: int,
    max_kv_splits: int,
    device_core_count: int,
    MAX_NUM_SEQ: int,
) -> None:
    """Into how many parts to split each row's KV; num_group rows a request. All lengths are at least 1."""
    seq_lens = memory(seq_lens_ptr)[:num_seq].astype(numpy.int64)
    longest, shortest = int(seq_lens.max()), int(seq_lens.min())
    if longest * 8 < shortest * 10:
        shortest = longest
    by_imbalance = min(-(-longest // shortest), max_kv_splits)
    cores = int(device_core_count * max(math.log2(longest / 64.0), 1.0))
    group = num_head // num_kv_head
    heads = num_head if group == 1 else -(-num_head // min(16, group))
    by_cores = min(-(-cores // (num_seq * num_group * heads)), max_kv_splits)
    chunks = (-(-longest // by_imbalance), -(-longest // by_cores))
    splits = numpy.maximum(*(-(-seq_lens // chunk) for chunk in chunks))
    memory(num_kv_splits_ptr)[: num_seq * num_group] = splits.repeat(num_group)
