"""Random launches of the kernels in `harness.emulation.kernels.allocation`."""

import torch

from tests.emulation.launches import POOL_LEN, Launch, Rng, batch_size, blank, ints, pool, power_of_two, rows


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
