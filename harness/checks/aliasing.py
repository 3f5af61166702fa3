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
        """Compare slot by slot."""
        each, size = forward.tokens_each, len(forward.requests)
        if each is None:
            return
        if len(forward.out_cache_loc) != size * each or len(forward.rows) != size or len(forward.seq_lens) != size:
            return  # I1 says so
        starts = forward.seq_lens.long() - (1 if forward.mode == "DECODE" else 0)
        positions = starts.unsqueeze(1) + starts.new_tensor(range(each))
        expected = forward.table[forward.rows.long().unsqueeze(1), positions]
        seen = forward.out_cache_loc.view(size, each)
        wrong = expected != seen
        if not bool(wrong.any()):
            return
        for place in wrong.any(1).nonzero().flatten().tolist():
            what = f"KV slots written at positions from {int(starts[place])} on"
            yield Violation(what, expected[place].tolist(), seen[place].tolist(), forward.requests[place])
