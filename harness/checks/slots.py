"""I2: every KV page has exactly one owner."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.checks.base import Check, Findings, Violation
from harness.observation import After, Memory, Request

if TYPE_CHECKING:
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
        """Count the owners of each page."""
        import torch  # by now an engine has, see harness/observation.py

        memory = after.memory
        owned = [(request, _pages(memory, request)) for request in after.requests]
        groups = [memory.free, memory.cached, *(pages for _, pages in owned)]
        everything = torch.cat([pages.to(torch.int64) for pages in groups])
        inside = (everything >= 0) & (everything <= memory.pages)
        counts = torch.zeros(memory.pages + 1, dtype=torch.int64, device=everything.device)
        counts.scatter_add_(0, everything.clamp(0, memory.pages), inside.to(torch.int64))
        counts[0] += 1 - 2 * counts[0]  # page 0 is nobody's
        wrong = (counts != 1).any() | ~inside.all()
        if not bool(wrong):
            return
        for request, pages in owned:
            stray = pages[(pages < 1) | (pages > memory.pages)]
            if len(stray):
                yield Violation("KV pages", f"1 to {memory.pages}", stray[:NAMED].tolist(), request.number)
        for page in (counts[1:] != 1).nonzero().flatten()[:NAMED].add(1).tolist():
            yield Violation(f"owners of KV page {page}", "one", _owners(page, memory, owned) or "nobody")


def _pages(memory: Memory, request: Request) -> Tensor:
    """The pages that a request owns: of whole pages, since what the radix cache holds of it is aligned."""
    slots = memory.table[request.row, request.protected : request.allocated : memory.page_size]
    return slots // memory.page_size if memory.page_size > 1 else slots


def _owners(page: int, memory: Memory, owned: list[tuple[Request, Tensor]]) -> list[str]:
    names = ["the allocator"] * int((memory.free == page).sum()) + ["the radix cache"] * int(
        (memory.cached == page).sum()
    )
    for request, pages in owned:
        names += [f"request {request.number}"] * int((pages == page).sum())
    return names
