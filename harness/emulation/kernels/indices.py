"""References for the Triton kernels that move KV slots between `req_to_token` and flat lists, for speed.

Under Triton's interpreter these cost milliseconds a launch. Each takes the grid, then the kernel's parameters under
their names; programs run in ascending order, as in the interpreter. All tensors are read and written by address
(`arguments.memory`), so a row may overrun into the next one as in the kernels; past the storage, numpy raises.

`req_to_token` is [rows, pool_len] int32 throughout; lengths, offsets and row numbers are int32 or int64.
"""

import numpy
import torch

from harness.emulation.kernels.arguments import Array, memory
from harness.emulation.kernels.replacement import Grid


def create_flashinfer_kv_indices_triton(
    grid: Grid,
    req_to_token_ptr: torch.Tensor,
    req_pool_indices_ptr: torch.Tensor,
    page_kernel_lens_ptr: torch.Tensor,
    kv_indptr: torch.Tensor,
    kv_start_idx: torch.Tensor | None,
    kv_indices_ptr: torch.Tensor,
    req_to_token_ptr_stride: int,
) -> None:
    """Copy each request's slots [start, start + len) to kv_indices at kv_indptr (`layers/attention/utils.py`)."""
    table, out = memory(req_to_token_ptr), memory(kv_indices_ptr)
    rows, lengths, targets = _integers(grid[0], req_pool_indices_ptr, page_kernel_lens_ptr, kv_indptr)
    starts = [0] * grid[0] if kv_start_idx is None else _integers(grid[0], kv_start_idx)[0]
    for row, start, length, target in zip(rows, starts, lengths, targets, strict=True):
        source = row * req_to_token_ptr_stride + start
        _copy(out, target, table, source, length)


def generate_draft_decode_kv_indices(
    grid: Grid,
    req_pool_indices: torch.Tensor,
    req_to_token: torch.Tensor,
    paged_kernel_lens: torch.Tensor,
    kv_indices: torch.Tensor,
    kv_indptr: torch.Tensor,
    positions: torch.Tensor,
    pool_len: int,
    kv_indices_stride: int,
    kv_indptr_stride: int,
    bs_upper: int,
    iter_upper: int,
    num_tokens_upper: int,
    page_size: int,
) -> None:
    """The KV slots of every draft step and branch (`speculative/spec_utils.py`); grid (steps, requests, topk).

    kv_indices [steps, kv_indices_stride]: in step i, branch by branch, the request's prefix and the first i + 1 of the
    branch's own slots. kv_indptr [steps, kv_indptr_stride]: from the sums of `positions` (a length per branch);
    element 0 of each row isn't written.
    """
    steps, requests, topk = grid
    table, out, bounds = memory(req_to_token), memory(kv_indices), memory(kv_indptr)
    rows, lengths = _integers(requests, req_pool_indices, paged_kernel_lens)
    branches = numpy.arange(1, requests * topk + 1)
    ends = numpy.cumsum(memory(positions)[: requests * topk])
    for step in range(steps):
        own = step + 1
        target = step * kv_indices_stride
        for row, length in zip(rows, lengths, strict=True):
            base = row * pool_len
            block = out[target : target + topk * (length + own)].reshape(topk, length + own)
            block[:, :length] = table[base : base + length]
            first = base + _branch_starts(length, steps, topk, page_size)
            block[:, length:] = table[first[:, None] + numpy.arange(own)]
            target += block.size
        at = step * kv_indptr_stride
        bounds[at + 1 : at + 1 + requests * topk] = ends + branches * own


def _branch_starts(length: int, steps: int, topk: int, page_size: int) -> Array:
    """[topk]: the position in its request's row of each branch's first own slot."""
    stride = steps
    if page_size > 1 and topk > 1:  # each branch has whole pages, the first of which repeats the prefix's last page
        stride = -(-(length % page_size + steps) // page_size) * page_size
    return length + numpy.arange(topk) * stride


def assign_req_to_token_pool(
    grid: Grid,
    req_pool_indices: torch.Tensor,
    req_to_token: torch.Tensor,
    start_offset: torch.Tensor,
    end_offset: torch.Tensor,
    out_cache_loc: torch.Tensor,
    pool_len: int,
    bs_upper: int,
) -> None:
    """Write flat out_cache_loc to each request's [start, end) in req_to_token (`speculative/spec_utils.py`)."""
    table, locations = memory(req_to_token), memory(out_cache_loc)
    at = 0
    for row, start, end in zip(*_integers(grid[0], req_pool_indices, start_offset, end_offset), strict=True):
        _copy(table, row * pool_len + start, locations, at, end - start)
        at += end - start


def assign_extend_cache_locs(
    grid: Grid,
    req_pool_indices: torch.Tensor,
    req_to_token: torch.Tensor,
    start_offset: torch.Tensor,
    end_offset: torch.Tensor,
    out_cache_loc: torch.Tensor,
    pool_len: int,
    bs_upper: int,
) -> None:
    """Read each request's [start, end) in req_to_token to flat out_cache_loc (`speculative/eagle_info_v2.py`)."""
    table, locations = memory(req_to_token), memory(out_cache_loc)
    at = 0
    for row, start, end in zip(*_integers(grid[0], req_pool_indices, start_offset, end_offset), strict=True):
        _copy(locations, at, table, row * pool_len + start, end - start)
        at += end - start


def assign_draft_cache_locs_page_size_1(
    grid: Grid,
    req_pool_indices: torch.Tensor,
    req_to_token: torch.Tensor,
    seq_lens: torch.Tensor,
    out_cache_loc: torch.Tensor,
    pool_len: int,
    topk: int,
    speculative_num_steps: int,
) -> None:
    """Read the topk * steps slots after each request's end to out_cache_loc (`speculative/eagle_info_v2.py`)."""
    table, locations = memory(req_to_token), memory(out_cache_loc)
    count = topk * speculative_num_steps
    for index, (row, length) in enumerate(zip(*_integers(grid[0], req_pool_indices, seq_lens), strict=True)):
        _copy(locations, index * count, table, row * pool_len + length, count)


def assign_draft_cache_locs(
    grid: Grid,
    req_pool_indices: torch.Tensor,
    req_to_token: torch.Tensor,
    seq_lens: torch.Tensor,
    extend_lens: torch.Tensor | None,
    num_new_pages_per_topk: torch.Tensor | None,
    out_cache_loc: torch.Tensor,
    source_cache_loc: torch.Tensor | None,
    target_cache_loc: torch.Tensor | None,
    last_page_lens_cumsum: torch.Tensor | None,
    duplicate_cache_len: int,
    pool_len: int,
    topk: int,
    speculative_num_steps: int,
    page_size: int,
    bs_upper: int,
    iter_upper: int,
) -> None:
    """Write the draft's slots after each request's end in req_to_token (`speculative/spec_utils.py`, the v1 worker).

    With pages and more than one branch, where any request's last page is partial: also list which slots to copy
    (source to target) so that every branch's first page holds that last page's prefix, and pack the slots that draft
    tokens will use to the front of out_cache_loc. With no partial page nothing is packed: `duplicate_cache_len` guards
    that too.
    """
    table, locations = memory(req_to_token), memory(out_cache_loc)
    paged = page_size != 1 and topk != 1
    rows, lengths = _integers(grid[0], req_pool_indices, seq_lens)
    counts = [topk * speculative_num_steps] * grid[0]
    if paged:
        assert extend_lens is not None
        counts = _integers(grid[0], extend_lens)[0]
    at = 0
    for index, (row, length, count) in enumerate(zip(rows, lengths, counts, strict=True)):
        base = row * pool_len
        _copy(table, base + length, locations, at, count)
        at += count
        if paged and duplicate_cache_len > 0:
            assert num_new_pages_per_topk is not None
            assert last_page_lens_cumsum is not None
            assert source_cache_loc is not None
            assert target_cache_loc is not None
            partial = length % page_size
            branches = numpy.arange(topk) * int(num_new_pages_per_topk[index]) * page_size
            pages = base + length - partial + branches[:, None]
            target = (topk - 1) * (int(last_page_lens_cumsum[index]) - partial)
            duplicates = slice(target, target + (topk - 1) * partial)
            copied = table[pages + numpy.arange(partial)]
            memory(source_cache_loc)[duplicates] = numpy.tile(copied[0], topk - 1)
            memory(target_cache_loc)[duplicates] = copied[1:].reshape(-1)
            first = index * topk * speculative_num_steps
            used = table[pages + partial + numpy.arange(speculative_num_steps)]
            locations[first : first + used.size] = used.reshape(-1)


def _integers(count: int, *tensors: torch.Tensor) -> list[list[int]]:
    """The first `count` values of each tensor."""
    return [memory(tensor)[:count].tolist() for tensor in tensors]


def _copy(target: Array, to: int, source: Array, start: int, count: int) -> None:
    """target[to : to + count] = source[start : start + count]; numpy raises where either storage ends before that."""
    if count > 0:
        target[to : to + count] = source[start : start + count]
