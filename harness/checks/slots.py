"""I2: every KV page has exactly one owner."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.checks.base import Check, Findings, Violation
from harness.observation import After, Memory, Request

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

NAMED = 6
"""Pages that a violation names."""


class Slots(Check):
    """Free pages, the radix cache's and the requests' partition 1 to the number of pages.

    `allocator.{free_pages,release_pages,free_group}` (mem_cache/allocator.py), `RadixCache.all_values_flatten`
    (mem_cache/radix_cache.py), `req_to_token[row, cache_protected_len:kv_allocated_len]` (mem_cache/memory_pool.py).
    SGLang's own check (managers/scheduler_runtime_checker_mixin.py) compares sums, and leaves topk > 1 out.
    """

    name = "I2-slots"

    def after_step(self, after: After) -> Findings:
        """Only if the owned pages are no partition, look at whose they are."""
        memory = after.memory
        owned = after.array("slots_owned") // memory.page_size
        if not _partition(memory.pages, after.array("pages_free"), after.array("pages_cached"), owned):
            yield from _violations(memory, after.requests)


def _partition(pages: int, *owned: NDArray[np.int64]) -> bool:
    """Whether there are as many owned pages as pages, and no page without an owner: then each has one."""
    import numpy as np  # with torch, which an engine has imported by now

    everything = np.concatenate(owned)
    # What is no page at all marks one of the two ends, which are nobody's.
    marks = np.zeros(pages + 2, dtype=bool)
    marks[everything.clip(0, pages + 1)] = True
    return len(everything) == pages and bool(marks[1:-1].all())


def _violations(memory: Memory, requests: list[Request]) -> Findings:
    """Count the owners of each page."""
    import torch

    owned = [(request, memory.slots_of(request) // memory.page_size) for request in requests]
    named: list[tuple[str, int | None, Tensor]] = [("KV pages", request.number, pages) for request, pages in owned]
    named += [("KV pages of the allocator", None, memory.free), ("KV pages of the radix cache", None, memory.cached)]
    for what, number, pages in named:
        stray = pages[(pages < 1) | (pages > memory.pages)]
        if len(stray):
            yield Violation(what, f"1 to {memory.pages}", stray[:NAMED].tolist(), number)
    everything = torch.cat([memory.free, memory.cached, *(pages for _, pages in owned)])
    inside = everything[(everything >= 1) & (everything <= memory.pages)].to(torch.int64)
    counts = torch.bincount(inside, minlength=memory.pages + 1)
    for page in (counts[1:] != 1).nonzero().flatten()[:NAMED].add(1).tolist():
        yield Violation(f"owners of KV page {page}", "one", _owners(page, memory, owned) or "nobody")


def _owners(page: int, memory: Memory, owned: list[tuple[Request, Tensor]]) -> list[str]:
    names = ["the allocator"] * int((memory.free == page).sum()) + ["the radix cache"] * int(
        (memory.cached == page).sum()
    )
    for request, pages in owned:
        names += [f"request {request.number}"] * int((pages == page).sum())
    return names
