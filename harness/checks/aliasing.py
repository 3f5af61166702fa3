"""I8: a forward writes where its requests' next positions are."""

from harness.checks.base import Check, Findings, Violation
from harness.observation import Forward


class Aliasing(Check):
    """The slots written are those that the table names for [seq_lens, ...) of the same request.

    `ForwardBatch.out_cache_loc` against `req_to_token` (mem_cache/memory_pool.py). In DECODE seq_lens counts the new
    token.
    """

    name = "I8-aliasing"

    def at_forward(self, forward: Forward) -> Findings:
        """Compare slot by slot; where the inputs' lengths don't fit I1 says so."""
        each, expected = forward.tokens_each, forward.values("own_slots")
        if each is None or not expected or expected == (seen := forward.values("out_cache_loc")):
            return
        for place, length in enumerate(forward.values("seq_lens")):
            mine = slice(place * each, (place + 1) * each)
            if expected[mine] != seen[mine]:
                what = f"KV slots written at positions from {length + forward.first} on"
                yield Violation(what, expected[mine], seen[mine], forward.requests[place])
