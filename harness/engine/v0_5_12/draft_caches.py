"""The draft's KV entries of a request, or of all that the radix cache holds for requests to come."""

from collections.abc import Iterator, Set
from typing import Any

import torch

from harness.engine.v0_5_12.buffers import model_runners
from harness.observation import DraftCache


def draft_cache(
    scheduler: Any, without_draft: Set[int], number: int | None, tokens: list[int], slots: torch.Tensor
) -> DraftCache:
    """Entries in `slots`, (positions,) int64, of the request `number`, or of the radix cache's path through `tokens`.

    `without_draft` are slots in which SGLang itself leaves no right entry.
    """
    pool = model_runners(scheduler)[1].token_to_kv_pool
    ends = [place for place, slot in enumerate(slots.tolist()) if slot in without_draft] if without_draft else []
    return DraftCache(number, tokens, pool.k_buffer[0][slots], pool.v_buffer[0][slots], tuple(ends))


def radix_caches(scheduler: Any, without_draft: Set[int]) -> list[DraftCache]:
    """Of each path from the root of the radix cache to a leaf; none without a draft, or without a cache."""
    tree = scheduler.tree_cache
    if len(model_runners(scheduler)) < 2 or tree.is_chunk_cache():
        return []
    return [draft_cache(scheduler, without_draft, None, *path) for path in _paths(tree.root_node, [], [])]


def _paths(node: Any, tokens: list[int], slots: list[torch.Tensor]) -> Iterator[tuple[list[int], torch.Tensor]]:
    """n + 1 tokens and n slots, since keys are pairs of tokens.

    `RadixKey.token_ids` (mem_cache/radix_cache.py) ends with the token that the next node's begins with.
    """
    for child in node.children.values():
        here, there = [*tokens[:-1], *child.key.token_ids], [*slots, child.value]
        if child.children:
            yield from _paths(child, here, there)
        else:
            yield here, torch.cat(there)
