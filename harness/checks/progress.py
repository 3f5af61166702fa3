"""I12: work gets done, and when all of it is done nothing is held."""

from harness.checks.base import Check, Findings, Violation
from harness.observation import After
from harness.program import Program

STALLED = 32
"""Steps with requests pending and neither a prefill nor a token, after which nothing is expected to come any more."""


class Progress(Check):
    """Steps bring tokens; an idle scheduler has all its pages, rows and radix locks back.

    `Scheduler.is_fully_idle` (managers/scheduler.py), `evictable_size` and `protected_size` (mem_cache/radix_cache.py),
    `ReqToTokenPool.free_slots` (mem_cache/memory_pool.py).
    """

    name = "I12-progress"

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self._stalled = 0

    def after_step(self, after: After) -> Findings:
        """Count steps without a token; look at what is held when idle."""
        moved = after.idle or after.step.forward_mode == "EXTEND" or sum(after.step.tokens_out) > 0
        self._stalled = 0 if moved else self._stalled + 1
        if self._stalled > STALLED:
            yield Violation("steps without a token, requests pending,", f"<= {STALLED}", self._stalled)
        if not after.idle:
            return
        memory = after.memory
        held = memory.pages - len(memory.free) - len(memory.cached)
        if held:
            yield Violation("KV pages that neither the allocator nor the radix cache has, when idle,", 0, held)
        if sorted(memory.free_rows) != list(range(1, memory.rows + 1)):
            taken = sorted(set(range(1, memory.rows + 1)) - set(memory.free_rows))
            yield Violation("request rows not free, when idle,", "none", taken or "one twice")
        if memory.locked_tokens:
            yield Violation("tokens locked in the radix cache, when idle,", 0, memory.locked_tokens)
