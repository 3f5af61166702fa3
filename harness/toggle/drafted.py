"""How far the draft's KV of a request reaches, where that is less far than the target's (strategy `plain`).

SGLang hands the committed KV of a request that ends to its prefix cache, where the next one with that prefix finds it
and drafts from it. So that it never finds positions without draft KV, a lagging request commits what was drafted only;
the rest is freed as over-allocated, the way `--strip-thinking-cache` keeps answers out.
"""

from collections.abc import Iterable
from typing import Any

DRAFTED = "kv_drafted_len"
"""Attribute that a lagging `Req` gets beside `kv_committed_len` (managers/schedule_batch.py): leading positions whose
draft KV is written. A request without it isn't behind."""


def drafted_len(request: Any, length: int) -> int:
    """Leading positions whose draft KV is written, of a request with `length` positions in the target's KV."""
    drafted: int = vars(request).get(DRAFTED, length)
    return drafted


def fall_behind(request: Any, length: int) -> int:
    """Note that a plain step made `length` positions of a request's KV; returns how many the draft is behind."""
    drafted: int = vars(request).setdefault(DRAFTED, length - 1)
    return length - drafted


def caught_up(requests: Iterable[Any]) -> None:
    """Note that the draft's KV of requests reaches as far as the target's, after a prefill or a catch-up."""
    for request in requests:
        vars(request).pop(DRAFTED, None)


def commit_drafted(committed: int, request: Any) -> int:
    """After `Req._cache_commit_len`: positions of a request that a prefix cache may take."""
    return min(committed, drafted_len(request, committed))
