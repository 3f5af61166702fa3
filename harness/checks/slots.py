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
        """Look whether the owned pages are a partition, in few launches; only if they aren't, at whose they are."""
        memory = after.memory
        if not _partition(memory, [_slots(memory, request) for request in after.requests]):
            yield from _violations(memory, after.requests)


def _partition(memory: Memory, slots: list[Tensor]) -> bool:
    """Whether there are as many owned pages as pages, and no page without an owner: then each has one."""
    import torch  # by now an engine has, see harness/observation.py

    owned = torch.cat(slots).to(torch.int64) if slots else memory.free[:0]
    if memory.page_size > 1:
        owned //= memory.page_size
    everything = torch.cat([memory.free, memory.cached, owned])
    if len(everything) != memory.pages:
        return False
    # What is no page at all marks one of the two ends, which are nobody's.
    marks = torch.zeros(memory.pages + 2, dtype=torch.bool, device=everything.device)
    marks.index_fill_(0, everything.clamp(0, memory.pages + 1), True)
    return bool(marks[1:-1].all())


def _violations(memory: Memory, requests: list[Request]) -> Findings:
    """Count the owners of each page."""
    import torch

    owned = [(request, _slots(memory, request) // memory.page_size) for request in requests]
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


def _slots(memory: Memory, request: Request) -> Tensor:
    """The first slot of each page that a request owns: whole pages, since what the radix cache has of it is aligned."""
    return memory.table[request.row, request.protected : request.allocated : memory.page_size]


def _owners(page: int, memory: Memory, owned: list[tuple[Request, Tensor]]) -> list[str]:
    names = ["the allocator"] * int((memory.free == page).sum()) + ["the radix cache"] * int(
        (memory.cached == page).sum()
    )
    for request, pages in owned:
        names += [f"request {request.number}"] * int((pages == page).sum())
    return names
