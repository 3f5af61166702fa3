"""Random launches of the kernels in `harness.emulation.kernels.indices`."""

import torch

from tests.emulation.launches import (
    POOL_LEN,
    Launch,
    Rng,
    batch_size,
    blank,
    ints,
    pool,
    power_of_two,
    rows,
    starts_of,
)


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
