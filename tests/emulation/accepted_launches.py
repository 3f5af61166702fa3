"""Random launches of the kernels in `harness.emulation.kernels.accepted`."""

import numpy
import torch

from tests.emulation.launches import Launch, Rng, batch_size, blank, ints, power_of_two


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
