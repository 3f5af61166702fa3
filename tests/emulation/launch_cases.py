"""Every Triton helper kernel that has a reference, with a maker of random launches."""

from collections.abc import Callable

from harness.emulation.kernels import accepted, allocation, indices
from tests.emulation.accepted_launches import (
    accepted_locs,
    bonus_tokens,
    evict_mask,
    extend_after_decode,
    target_locs,
    unfinished_locs,
)
from tests.emulation.allocation_launches import (
    decoding,
    extension,
    kv_move,
    kv_splits,
    last_loc,
    position,
    token_pool_write,
)
from tests.emulation.index_launches import draft_kv_indices, kv_indices, ranges, v1_draft_locs, v2_draft_locs
from tests.emulation.launches import Launch, Rng

Case = tuple[str, Callable[..., None], Callable[[Rng], Launch]]

CASES: list[Case] = [
    ("layers/attention/utils.py", indices.create_flashinfer_kv_indices_triton, kv_indices),
    ("speculative/spec_utils.py", indices.generate_draft_decode_kv_indices, draft_kv_indices),
    ("speculative/spec_utils.py", indices.assign_req_to_token_pool, lambda rng: ranges(rng, output=False)),
    ("speculative/eagle_info_v2.py", indices.assign_extend_cache_locs, lambda rng: ranges(rng, output=True)),
    ("speculative/eagle_info_v2.py", indices.assign_draft_cache_locs_page_size_1, v2_draft_locs),
    ("speculative/spec_utils.py", indices.assign_draft_cache_locs, lambda rng: v1_draft_locs(rng, paged=False)),
    ("speculative/spec_utils.py", indices.assign_draft_cache_locs, lambda rng: v1_draft_locs(rng, True, batch=1)),
    ("speculative/spec_utils.py", accepted.create_extend_after_decode_spec_info, extend_after_decode),
    ("speculative/eagle_info_v2.py", accepted.fill_bonus_tokens, bonus_tokens),
    ("speculative/eagle_info_v2.py", accepted.fill_accepted_out_cache_loc, accepted_locs),
    ("speculative/spec_utils.py", accepted.align_evict_mask_to_page_size, evict_mask),
    ("speculative/spec_utils.py", accepted.get_target_cache_loc, target_locs),
    ("speculative/spec_utils.py", accepted.filter_finished_cache_loc_kernel, unfinished_locs),
    ("mem_cache/allocator.py", allocation.alloc_extend_kernel, extension),
    ("mem_cache/allocator.py", allocation.alloc_decode_kernel, decoding),
    ("mem_cache/common.py", allocation.get_last_loc_kernel, last_loc),
    ("mem_cache/common.py", allocation.write_req_to_token_pool_triton, token_pool_write),
    ("mem_cache/memory_pool.py", allocation.copy_all_layer_kv_cache_tiled, kv_move),
    ("model_executor/forward_batch_info.py", allocation.compute_position_kernel, position),
]
"""Source file below `sglang/srt`, reference (of the kernel's name), and a maker of launches."""

SEQUENTIAL_CASES: list[Case] = [
    ("speculative/spec_utils.py", indices.assign_draft_cache_locs, lambda rng: v1_draft_locs(rng, paged=True)),
    ("layers/attention/triton_backend.py", allocation.get_num_kv_splits_triton, kv_splits),
]
"""Not to be compared on a GPU.

With pages, branches and several requests, a program of assign_draft_cache_locs packs its slots over ones that another
program may not have read yet: the result depends on their order. get_num_kv_splits_triton truncates a logarithm, which
a GPU approximates.
"""
