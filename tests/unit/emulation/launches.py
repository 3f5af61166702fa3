"""Random launches of the Triton helper kernels, with the shapes and dtypes of SGLang's call sites."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy
import torch

from harness.emulation.kernels import accepted, allocation, indices

Rng = numpy.random.Generator
POOL_ROWS, POOL_LEN = 12, 700


@dataclass
class Launch:
    """A grid and the kernel's arguments, in order; `pointees` are tensors that an argument holds the addresses of."""

    grid: tuple[int, ...]
    arguments: dict[str, Any]
    pointees: dict[str, list[torch.Tensor]] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)

    def on(self, device: str) -> "Launch":
        """A copy with its own tensors on that device."""
        pointees = {name: [tensor.to(device, copy=True) for tensor in group] for name, group in self.pointees.items()}
        arguments = {
            name: value.to(device, copy=True) if isinstance(value, torch.Tensor) else value
            for name, value in self.arguments.items()
        }
        for name, group in pointees.items():
            arguments[name] = torch.tensor([tensor.data_ptr() for tensor in group], dtype=torch.uint64, device=device)
        return Launch(self.grid, arguments, pointees, self.options)

    def tensors(self) -> dict[str, torch.Tensor]:
        """Everything that the launch may have written."""
        own = {n: v.cpu() for n, v in self.arguments.items() if isinstance(v, torch.Tensor) and n not in self.pointees}
        return own | {f"{n}[{i}]": t.cpu() for n, group in self.pointees.items() for i, t in enumerate(group)}


def ints(values: Any, dtype: torch.dtype = torch.int64) -> torch.Tensor:
    return torch.as_tensor(numpy.asarray(values)).to(dtype)


def blank(count: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
    return torch.full((count,), -1, dtype=dtype)


def power_of_two(value: int) -> int:
    return 1 << (value - 1).bit_length()


def batch_size(rng: Rng) -> int:
    return int(rng.integers(1, POOL_ROWS))


def pool(rng: Rng) -> torch.Tensor:
    return ints(rng.permutation(POOL_ROWS * POOL_LEN).reshape(POOL_ROWS, POOL_LEN), torch.int32)


def rows(rng: Rng, batch: int) -> torch.Tensor:
    return ints(rng.permutation(POOL_ROWS)[:batch])


def starts_of(lengths: Any) -> torch.Tensor:
    return ints(numpy.concatenate([[0], numpy.cumsum(lengths)]), torch.int32)


def kv_indices(rng: Rng) -> Launch:
    batch = batch_size(rng)
    lengths = rng.integers(0, 600 if rng.random() < 0.2 else 60, batch)
    arguments = {
        "req_to_token_ptr": pool(rng),
        "req_pool_indices_ptr": rows(rng, batch),
        "page_kernel_lens_ptr": ints(lengths),
        "kv_indptr": starts_of(lengths),
        "kv_start_idx": ints(rng.integers(0, 50, batch)) if rng.random() < 0.5 else None,
        "kv_indices_ptr": blank(int(lengths.sum()) + 5, torch.int64 if rng.random() < 0.7 else torch.int32),
        "req_to_token_ptr_stride": POOL_LEN,
    }
    return Launch((batch,), arguments)


def draft_kv_indices(rng: Rng) -> Launch:
    steps, requests, topk = (int(rng.integers(1, limit)) for limit in (5, 4, 4))
    lengths = rng.integers(1, 200 if rng.random() < 0.2 else 40, requests)
    arguments = {
        "req_pool_indices": rows(rng, requests),
        "req_to_token": pool(rng),
        "paged_kernel_lens": ints(lengths),
        "kv_indices": blank(steps * 3000).view(steps, 3000),
        "kv_indptr": blank(steps * 30, torch.int32).view(steps, 30),
        "positions": ints(lengths.repeat(topk)),
        "pool_len": POOL_LEN,
        "kv_indices_stride": 3000,
        "kv_indptr_stride": 30,
        "bs_upper": power_of_two(requests),
        "iter_upper": power_of_two(steps),
        "num_tokens_upper": power_of_two(requests * topk),
        "page_size": int(rng.choice([1, 4, 16])),
    }
    return Launch((steps, requests, topk), arguments)


def ranges(rng: Rng, output: bool) -> Launch:
    batch = batch_size(rng)
    start = rng.integers(0, 500, batch)
    lengths = rng.integers(0, 70, batch)
    total = int(lengths.sum()) + 3
    arguments = {
        "req_pool_indices": rows(rng, batch),
        "req_to_token": pool(rng),
        "start_offset": ints(start),
        "end_offset": ints(start + lengths),
        "out_cache_loc": blank(total) if output else ints(rng.permutation(9999)[:total]),
        "pool_len": POOL_LEN,
        "bs_upper": power_of_two(batch),
    }
    return Launch((batch,), arguments)


def v2_draft_locs(rng: Rng) -> Launch:
    batch, topk, steps = batch_size(rng), int(rng.integers(1, 9)), int(rng.integers(1, 8))
    arguments = {
        "req_pool_indices": rows(rng, batch),
        "req_to_token": pool(rng),
        "seq_lens": ints(rng.integers(1, 500, batch)),
        "out_cache_loc": blank(batch * topk * steps + 3),
        "pool_len": POOL_LEN,
        "topk": topk,
        "speculative_num_steps": steps,
    }
    return Launch((batch,), arguments)


def v1_draft_locs(rng: Rng, paged: bool, batch: int = 0) -> Launch:
    batch, steps = batch or batch_size(rng), int(rng.integers(1, 6))
    topk = int(rng.integers(2, 5)) if paged else int(rng.integers(1, 9))
    page_size = int(rng.choice([2, 4, 16])) if paged else 1
    lengths = rng.integers(1, 300, batch)
    last = lengths % page_size
    pages = -(-(last + steps) // page_size)
    extend = lengths // page_size * page_size + pages * page_size * topk - lengths
    duplicates = int(last.sum()) * (topk - 1)
    slots = int(extend.sum()) if paged else batch * topk * steps
    arguments = {
        "req_pool_indices": rows(rng, batch),
        "req_to_token": pool(rng),
        "seq_lens": ints(lengths),
        "extend_lens": ints(extend) if paged else None,
        "num_new_pages_per_topk": ints(pages) if paged else None,
        "out_cache_loc": ints(rng.permutation(20000)[:slots]),
        "source_cache_loc": blank(duplicates, torch.int32) if paged else None,
        "target_cache_loc": blank(duplicates, torch.int32) if paged else None,
        "last_page_lens_cumsum": ints(last.cumsum()) if paged else None,
        "duplicate_cache_len": duplicates if paged else 0,
        "pool_len": POOL_LEN,
        "topk": topk,
        "speculative_num_steps": steps,
        "page_size": page_size,
        "bs_upper": power_of_two(batch),
        "iter_upper": power_of_two(steps + page_size),
    }
    return Launch((batch,), arguments)


def extend_after_decode(rng: Rng) -> Launch:
    batch, steps = batch_size(rng), int(rng.integers(1, 8))
    accept = rng.integers(1, steps + 2, batch)
    total = int(accept.sum())
    arguments = {
        "accept_tokens": ints(rng.integers(0, 999, total), torch.int32),
        "seq_lens": ints(rng.integers(20, 500, batch)),
        "accept_lens": ints(accept, torch.int32),
        "positions": blank(total + 3),
        "bonus_tokens_ptr": blank(batch, torch.int32),
        "bs_upper": power_of_two(max(steps + 1, batch)),
    }
    return Launch((batch,), arguments)


def bonus_tokens(rng: Rng) -> Launch:
    batch, nodes = batch_size(rng), int(rng.integers(1, 9))
    arguments = {
        "accept_tokens": ints(rng.integers(0, 999, batch * nodes), torch.int32),
        "accept_lens": ints(rng.integers(1, nodes + 1, batch), torch.int32),
        "bonus_tokens_ptr": blank(batch, torch.int32),
        "num_draft_tokens": nodes,
    }
    return Launch((batch,), arguments)


def accepted_locs(rng: Rng) -> Launch:
    size = batch_size(rng) * int(rng.integers(1, 5))
    arguments = {
        "accept_index": ints(numpy.where(rng.random(size) < 0.5, numpy.arange(size), -1), torch.int32),
        "out_cache_loc": ints(rng.permutation(9999)[:size]),
        "accepted_out_cache_loc": torch.zeros(size, dtype=torch.int64),
        "size_upper": power_of_two(size),
    }
    return Launch((size,), arguments)


def evict_mask(rng: Rng) -> Launch:
    batch, nodes = batch_size(rng), int(rng.integers(1, 9))
    kept = rng.integers(1, nodes + 1, batch)
    arguments = {
        "seq_lens": ints(rng.integers(1, 100, batch)),
        "evict_mask": torch.from_numpy(numpy.arange(nodes) >= kept[:, None]).reshape(-1),
        "page_size": int(rng.choice([2, 4, 16])),
        "num_draft_tokens": nodes,
        "BLOCK_SIZE": power_of_two(nodes),
    }
    return Launch((batch,), arguments)


def target_locs(rng: Rng) -> Launch:
    batch, nodes = batch_size(rng), int(rng.integers(1, 17))
    correct = rng.integers(0, nodes, batch)
    freed = numpy.array([int(rng.integers(0, nodes - count)) for count in correct])
    arguments = {
        "tgt_cache_loc": blank(int(correct.sum()) + batch),
        "to_free_slots": blank(int(freed.sum()) + 1),
        "num_correct_drafts": ints(correct, torch.int32),
        "to_free_num_slots": ints(freed),
        "out_cache_loc": ints(rng.permutation(9999)[: batch * nodes]),
        "num_verify_tokens": nodes,
        "num_verify_tokens_upper": power_of_two(nodes),
        "bs_upper": power_of_two(batch),
    }
    return Launch((batch,), arguments)


def unfinished_locs(rng: Rng) -> Launch:
    batch, nodes = batch_size(rng), int(rng.integers(1, 17))
    correct = rng.integers(0, nodes, batch)
    kept = numpy.where(rng.random(batch) < 0.5, correct + 1, 0)
    arguments = {
        "out_cache_loc": blank(int(kept.sum()) + 1),
        "tgt_cache_loc": ints(rng.permutation(9999)[: int(correct.sum()) + batch]),
        "num_correct_drafts": ints(correct, torch.int32),
        "num_accept_tokens_filter": ints(kept, torch.int32),
        "bs_upper": power_of_two(batch),
        "num_verify_tokens_upper": power_of_two(nodes),
    }
    return Launch((batch,), arguments)


def extension(rng: Rng) -> Launch:
    batch, page_size = batch_size(rng), int(rng.choice([2, 4, 16, 64]))
    before = rng.integers(0, 150, batch)
    after = before + rng.integers(0, 100, batch)
    arguments = {
        "pre_lens_ptr": ints(before),
        "seq_lens_ptr": ints(after),
        "last_loc_ptr": ints(rng.integers(0, 99, batch) * page_size + (before - 1) % page_size),
        "free_page_ptr": ints(rng.permutation(5000)[:1500]),
        "out_indices": blank(int((after - before).sum()) + 1),
        "bs_upper": power_of_two(batch),
        "page_size": page_size,
    }
    return Launch((batch,), arguments)


def decoding(rng: Rng) -> Launch:
    batch, page_size = batch_size(rng), int(rng.choice([2, 4, 16]))
    lengths = rng.integers(1, 100, batch)
    arguments = {
        "seq_lens_ptr": ints(lengths),
        "last_loc_ptr": ints(rng.integers(0, 99, batch) * page_size + (lengths - 2) % page_size),
        "free_page_ptr": ints(rng.permutation(500)),
        "out_indices": blank(batch),
        "bs_upper": power_of_two(batch),
        "page_size": page_size,
    }
    return Launch((batch,), arguments)


def last_loc(rng: Rng) -> Launch:
    batch = batch_size(rng)
    arguments = {
        "req_to_token": pool(rng),
        "req_pool_indices_tensor": rows(rng, batch),
        "prefix_lens_tensor": ints(rng.integers(0, 5, batch)),
        "result": blank(batch) - 5,
        "num_tokens": batch,
        "req_to_token_stride": POOL_LEN,
        "BLOCK_SIZE": 256,
    }
    return Launch((1,), arguments)


def token_pool_write(rng: Rng) -> Launch:
    batch = batch_size(rng)
    before, new = rng.integers(0, 50, batch), rng.integers(0, 50, batch)
    arguments = {
        "req_to_token_ptr": pool(rng),
        "req_pool_indices": rows(rng, batch),
        "prefix_tensors": None,
        "pre_lens": ints(before),
        "seq_lens": ints(before + new),
        "extend_lens": ints(new),
        "out_cache_loc": ints(rng.permutation(9999)[: int(new.sum()) + 1]),
        "req_to_token_ptr_stride": POOL_LEN,
    }
    prefixes = [ints(rng.permutation(9999)[: max(length, 1)]) for length in before]
    return Launch((batch,), arguments, {"prefix_tensors": prefixes})


def kv_move(rng: Rng) -> Launch:
    count, layers = int(rng.integers(1, 40)), int(rng.integers(1, 4))
    slots = rng.permutation(100)
    arguments = {
        "data_ptrs": None,
        "strides": ints([96] * layers),
        "tgt_loc_ptr": ints(slots[:count]),
        "src_loc_ptr": ints(rng.permutation(slots)[:count]),
        "num_locs": count,
        "num_locs_upper": power_of_two(count),
        "BYTES_PER_TILE": 64,
    }
    buffers = [ints(rng.integers(0, 256, (100, 96)), torch.uint8) for _ in range(layers)]
    return Launch((layers, 2), arguments, {"data_ptrs": buffers}, {"num_warps": 4, "num_stages": 2})


def position(rng: Rng) -> Launch:
    batch = batch_size(rng)
    new = rng.integers(0, 600 if rng.random() < 0.2 else 20, batch)
    arguments = {
        "positions": blank(int(new.sum()) + 1),
        "extend_start_loc": blank(batch, torch.int32),
        "extend_prefix_lens": ints(rng.integers(0, 50, batch), torch.int32),
        "extend_seq_lens": ints(new, torch.int32),
        "has_prefix": bool(rng.random() < 0.8),
    }
    return Launch((batch,), arguments)


def kv_splits(rng: Rng) -> Launch:
    batch, group, kv_heads = batch_size(rng), int(rng.integers(1, 5)), int(rng.choice([1, 2, 4]))
    arguments = {
        "num_kv_splits_ptr": blank(batch * group, torch.int32),
        "seq_lens_ptr": ints(rng.integers(1, 3000, batch)),
        "num_seq": batch,
        "num_group": group,
        "num_head": kv_heads * int(rng.choice([1, 2, 8])),
        "num_kv_head": kv_heads,
        "max_kv_splits": 8,
        "device_core_count": 132,
        "MAX_NUM_SEQ": 256,
    }
    return Launch((1,), arguments)


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
