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
        own, each = forward.own_slots(), forward.tokens_each
        if own is None or each is None:
            return
        slots, lengths = forward.values("out_cache_loc"), forward.values("seq_lens")
        for place, expected in enumerate(own):
            seen = slots[place * each : (place + 1) * each]
            if seen != expected:
                what = f"KV slots written at positions from {lengths[place] + forward.first} on"
                yield Violation(what, expected, seen, forward.requests[place])
