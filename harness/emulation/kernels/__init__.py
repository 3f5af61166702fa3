"""References for the kernels that SGLang's EAGLE-3 path on a dense Llama launches, and where they belong.

SGLang imports kernels by name, so `TRITON_REFERENCES` lists every module on that path which holds one. Modules are
named here, and imported by `install()`: the references themselves don't need SGLang.
"""

from collections.abc import Callable
from typing import Any

from harness.emulation.kernels import accepted, allocation, attention, indices, sampling, tree
from harness.emulation.kernels.replacement import Reference, ReplacedFunction, ReplacedKernel, TritonReference

__all__ = ["SGL_KERNEL_REFERENCES", "TRITON_REFERENCES", "ReplacedFunction", "ReplacedKernel", "TritonReference"]

SGL_KERNEL_REFERENCES: dict[str, Callable[..., Any]] = {
    "build_tree_kernel_efficient": tree.build_tree_kernel_efficient,
    "verify_tree_greedy": tree.verify_tree_greedy,
    "tree_speculative_sampling_target_only": sampling.tree_speculative_sampling_target_only,
    "top_k_renorm_prob": sampling.top_k_renorm_prob,
    "top_k_renorm_probs": sampling.top_k_renorm_prob,
    "top_p_renorm_prob": sampling.top_p_renorm_prob,
    "top_p_renorm_probs": sampling.top_p_renorm_prob,
}
"""Symbols of `sgl_kernel`."""

_DECODE, _EXTEND, _TRITON_BACKEND, _ATTENTION_UTILS = (
    f"sglang.srt.layers.attention.{name}"
    for name in ("triton_ops.decode_attention", "triton_ops.extend_attention", "triton_backend", "utils")
)
_ALLOCATOR, _COMMON, _POOL = (f"sglang.srt.mem_cache.{name}" for name in ("allocator", "common", "memory_pool"))
_FORWARD_BATCH = "sglang.srt.model_executor.forward_batch_info"
_SPEC_UTILS, _INFO, _INFO_V2, _WORKER, _WORKER_V2 = (
    f"sglang.srt.speculative.{name}"
    for name in ("spec_utils", "eagle_info", "eagle_info_v2", "eagle_worker", "eagle_worker_v2")
)

_HOLDERS: tuple[tuple[Reference, tuple[str, ...]], ...] = (
    (indices.create_flashinfer_kv_indices_triton, (_ATTENTION_UTILS, _TRITON_BACKEND, _INFO)),
    (indices.generate_draft_decode_kv_indices, (_SPEC_UTILS, _TRITON_BACKEND)),
    (indices.assign_req_to_token_pool, (_SPEC_UTILS,)),
    (indices.assign_extend_cache_locs, (_INFO_V2, _WORKER_V2)),
    (indices.assign_draft_cache_locs, (_SPEC_UTILS, _WORKER)),
    (indices.assign_draft_cache_locs_page_size_1, (_INFO_V2,)),
    (accepted.create_extend_after_decode_spec_info, (_SPEC_UTILS, _INFO)),
    (accepted.align_evict_mask_to_page_size, (_SPEC_UTILS, _INFO)),
    (accepted.get_target_cache_loc, (_SPEC_UTILS, _INFO)),
    (accepted.filter_finished_cache_loc_kernel, (_SPEC_UTILS, _INFO)),
    (accepted.fill_bonus_tokens, (_INFO_V2, _WORKER_V2)),
    (accepted.fill_accepted_out_cache_loc, (_INFO_V2, _WORKER_V2)),
    (allocation.alloc_extend_kernel, (_ALLOCATOR,)),
    (allocation.alloc_decode_kernel, (_ALLOCATOR,)),
    (allocation.get_last_loc_kernel, (_COMMON,)),
    (allocation.write_req_to_token_pool_triton, (_COMMON,)),
    (allocation.copy_all_layer_kv_cache_tiled, (_POOL,)),
    (allocation.compute_position_kernel, (_FORWARD_BATCH,)),
    (allocation.get_num_kv_splits_triton, (_TRITON_BACKEND,)),
)
"""Each reference has its kernel's name; the first module defines the kernel, the others import it."""

TRITON_REFERENCES: list[ReplacedKernel | ReplacedFunction] = [
    ReplacedFunction(_DECODE, "decode_attention_fwd", attention.decode_attention_fwd),
    ReplacedFunction(_EXTEND, "extend_attention_fwd", attention.extend_attention_fwd),
    *(ReplacedKernel(module, reference.__name__, reference) for reference, holders in _HOLDERS for module in holders),
]
"""`install()` each. `TritonAttnBackend.__init__` imports the attention functions: install them before it runs."""
