"""References for the Triton kernels that follow a verify step: what was accepted, what is freed, for speed.

Same conventions as `indices.py`. Sources: `sglang/srt/speculative/{spec_utils,eagle_info_v2}.py`.
"""

import numpy
import torch

from harness.emulation.kernels.arguments import memory
from harness.emulation.kernels.replacement import Grid


def create_extend_after_decode_spec_info(
    grid: Grid,
    accept_tokens: torch.Tensor,
    seq_lens: torch.Tensor,
    accept_lens: torch.Tensor,
    positions: torch.Tensor,
    bonus_tokens_ptr: torch.Tensor,
    bs_upper: int,
) -> None:
    """Positions of each request's accepted tokens, flat, and its last one, the bonus token (v1 draft extend)."""
    tokens, out, bonus = memory(accept_tokens), memory(positions), memory(bonus_tokens_ptr)
    at = 0
    for index in range(grid[0]):
        length, accepted = int(seq_lens[index]), int(accept_lens[index])
        out[at : at + accepted] = numpy.arange(length - accepted, length)
        at += accepted
        bonus[index] = tokens[at - 1]


def fill_bonus_tokens(
    grid: Grid,
    accept_tokens: torch.Tensor,
    accept_lens: torch.Tensor,
    bonus_tokens_ptr: torch.Tensor,
    num_draft_tokens: int,
) -> None:
    """The last accepted token of each request, of num_draft_tokens places a request (V2)."""
    batch = grid[0]
    last = numpy.arange(batch) * num_draft_tokens + memory(accept_lens)[:batch] - 1
    memory(bonus_tokens_ptr)[:batch] = memory(accept_tokens)[last]


def fill_accepted_out_cache_loc(
    grid: Grid,
    accept_index: torch.Tensor,
    out_cache_loc: torch.Tensor,
    accepted_out_cache_loc: torch.Tensor,
    size_upper: int,
) -> None:
    """The slots of the accepted tokens, packed to the front; -1 in accept_index is none."""
    index = memory(accept_index)[: grid[0]]
    index = index[index > -1]
    memory(accepted_out_cache_loc)[: len(index)] = memory(out_cache_loc)[index]


def align_evict_mask_to_page_size(
    grid: Grid,
    seq_lens: torch.Tensor,
    evict_mask: torch.Tensor,
    page_size: int,
    num_draft_tokens: int,
    BLOCK_SIZE: int,
) -> None:
    """Keep the tokens that share a page with the last accepted one, or follow on its page."""
    mask = memory(evict_mask)[: grid[0] * num_draft_tokens].reshape(grid[0], num_draft_tokens)
    for row, length in zip(mask, memory(seq_lens)[: grid[0]].tolist(), strict=True):
        kept = num_draft_tokens - int(row.sum())
        start = (length + kept - 1) // page_size * page_size - length
        row[max(start, 0) : max(start + page_size, 0)] = 0


def get_target_cache_loc(
    grid: Grid,
    tgt_cache_loc: torch.Tensor,
    to_free_slots: torch.Tensor,
    num_correct_drafts: torch.Tensor,
    to_free_num_slots: torch.Tensor,
    out_cache_loc: torch.Tensor,
    num_verify_tokens: int,
    num_verify_tokens_upper: int,
    bs_upper: int,
) -> None:
    """Split each request's row of out_cache_loc: its head is where accepted tokens move to, its tail is freed."""
    target, free = memory(tgt_cache_loc), memory(to_free_slots)
    rows = memory(out_cache_loc)[: grid[0] * num_verify_tokens].reshape(grid[0], num_verify_tokens)
    at = freed = 0
    for index, row in enumerate(rows):
        kept, freed_here = int(num_correct_drafts[index]) + 1, int(to_free_num_slots[index])
        target[at : at + kept] = row[:kept]
        free[freed : freed + freed_here] = row[num_verify_tokens - freed_here :]
        at += kept
        freed += freed_here


def filter_finished_cache_loc_kernel(
    grid: Grid,
    out_cache_loc: torch.Tensor,
    tgt_cache_loc: torch.Tensor,
    num_correct_drafts: torch.Tensor,
    num_accept_tokens_filter: torch.Tensor,
    bs_upper: int,
    num_verify_tokens_upper: int,
) -> None:
    """Keep the slots of the unfinished requests only (num_accept_tokens_filter is 0 for the finished)."""
    source, out = memory(tgt_cache_loc), memory(out_cache_loc)
    start = at = 0
    for index in range(grid[0]):
        kept = int(num_accept_tokens_filter[index])
        out[at : at + kept] = source[start : start + kept]
        start += int(num_correct_drafts[index]) + 1
        at += kept
