"""I5: the sum of lengths is the sum of the lengths."""

from harness.checks.base import Check, Findings, Skipped, Violation
from harness.observation import Forward


class Sums(Check):
    """Attention metadata is sized by `seq_lens_sum` and filled by `seq_lens`.

    `ForwardBatch.{seq_lens,seq_lens_cpu,seq_lens_sum}` (model_executor/forward_batch_info.py).
    """

    name = "I5-sums"

    def at_forward(self, forward: Forward) -> Findings:
        """Compare the sum, the lengths on the host and those on the device."""
        if forward.seq_lens_cpu is None or forward.seq_lens_sum is None:
            yield Skipped("the forward has no lengths, or no sum of them, on the host")
            return
        self.answered += 1
        host = forward.seq_lens_cpu.tolist()
        if forward.seq_lens_sum != sum(host):
            yield Violation(f"seq_lens_sum, in {forward.mode},", sum(host), forward.seq_lens_sum)
        device = forward.values("seq_lens")
        if device != host:
            yield Violation(f"seq_lens_cpu, in {forward.mode},", device, host)
