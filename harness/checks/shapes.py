"""I1: a forward's inputs are as long as its batch."""

from harness.checks.base import Check, Findings, Violation
from harness.observation import Forward


class Shapes(Check):
    """One token a request in DECODE, the tree's nodes in TARGET_VERIFY, in every input alike.

    `ForwardBatch.{input_ids,out_cache_loc,positions}` (model_executor/forward_batch_info.py).
    """

    name = "I1-shapes"

    def at_forward(self, forward: Forward) -> Findings:
        """Compare the lengths of the three inputs with each other, and with the batch where that settles them."""
        size = len(forward.requests)
        expected = forward.counts["input_ids"] if forward.tokens_each is None else size * forward.tokens_each
        for name, count in forward.counts.items():
            if count != expected:
                yield Violation(f"length of {name}, in {forward.mode} of {size} requests,", expected, count)
        if len(forward.seq_lens) != size or len(forward.rows) != size:
            yield Violation("length of seq_lens and req_pool_indices", size, (len(forward.seq_lens), len(forward.rows)))
