"""I2: every KV page has exactly one owner."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.checks.base import Check, Findings, Violation
from harness.observation import After

if TYPE_CHECKING:
    from harness.fetched import Values

    Named = tuple[str, int | None, Values]
    """What pages they are, of which request, and the pages."""

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
        owned = after.pages_owned()
        free, cached = after.array("pages_free"), after.array("pages_cached")
        if not _partition(after.memory.pages, free, cached, *owned):
            named: list[Named] = [
                ("KV pages of the allocator", None, free),
                ("KV pages of the radix cache", None, cached),
            ]
            named += [("KV pages", request.number, pages) for request, pages in zip(after.requests, owned, strict=True)]
            yield from _violations(after.memory.pages, named)


def _partition(pages: int, *owned: Values) -> bool:
    """Whether there are as many owned pages as pages, and no page without an owner: then each has one."""
    import numpy as np  # with torch, which an engine has imported by now

    everything = np.concatenate(owned)
    # What is no page at all marks one of the two ends, which are nobody's.
    marks = np.zeros(pages + 2, dtype=bool)
    marks[everything.clip(0, pages + 1)] = True
    return len(everything) == pages and bool(marks[1:-1].all())


def _violations(pages: int, named: list[Named]) -> Findings:
    """Count the owners of each page."""
    import numpy as np

    for what, number, owned in named:
        stray = owned[(owned < 1) | (owned > pages)]
        if len(stray):
            yield Violation(what, f"1 to {pages}", stray[:NAMED].tolist(), number)
    everything = np.concatenate([owned for *_, owned in named])
    counts = np.bincount(everything[(everything >= 1) & (everything <= pages)], minlength=pages + 1)
    for page in (np.flatnonzero(counts[1:] != 1)[:NAMED] + 1).tolist():
        yield Violation(f"owners of KV page {page}", "one", _owners(page, named) or "nobody")


def _owners(page: int, named: list[Named]) -> list[str]:
    names = []
    for what, number, owned in named:
        owner = what.removeprefix("KV pages of ") if number is None else f"request {number}"
        names += [owner] * int((owned == page).sum())
    return names
