"""I3 and I4: what the scheduler believes about lengths, v1 and V2."""

from harness.checks.base import Check, Findings, Violation
from harness.configuration import Worker
from harness.observation import After, Forward, Launch, Request


def known(request: Request) -> int:
    """Tokens that a request's KV cache must hold: all that are known but the last, which is yet to be read."""
    return request.prompt + len(request.output) - 1


class LengthsV1(Check):
    """Without overlap every length of a request that decodes is the same number.

    `Req.{kv_committed_len,kv_allocated_len}`, `ScheduleBatch.{seq_lens,seq_lens_cpu}` (managers/schedule_batch.py),
    which v1 advances in `EagleVerifyInput.verify` (speculative/eagle_info.py).
    """

    name = "I3-lengths-v1"

    def at_launch(self, launch: Launch) -> Findings:
        """Compare four lengths of each request."""
        if self.config.overlap:
            return
        on_device, on_host = launch.values("seq_lens"), launch.seq_lens_cpu.tolist()
        if not len(launch.requests) == len(on_device) == len(on_host):
            yield Violation("rows of seq_lens, seq_lens_cpu", len(launch.requests), (len(on_device), len(on_host)))
            return
        for request, device, host in zip(launch.requests, on_device, on_host, strict=True):
            expected = known(request) + (0 if launch.speculative else 1)
            lengths = {
                "seq_lens": device,
                "seq_lens_cpu": host,
                "kv_committed_len": request.committed,
                "kv_allocated_len": request.allocated,
            }
            for name, length in lengths.items():
                if length != expected:
                    yield Violation(name, expected, length, request.number)


class LengthsV2(Check):
    """With overlap a request is committed one token further for each decode in flight, and owns all that it may write.

    `EagleDraftInputV2Mixin.prepare_for_decode` (speculative/eagle_info_v2.py) commits a bonus token ahead of the
    result, `_resolve_spec_overlap_tokens` (managers/scheduler_output_processor_mixin.py) settles it.
    """

    name = "I4-lengths-v2"

    def after_step(self, after: After) -> Findings:
        """Compare the committed length of each request that goes on."""
        if not self.config.overlap or self.config.worker is not Worker.V2:
            return
        for request in after.requests:
            if request.finished or not request.prefilled or not request.output:
                continue
            expected = known(request) + request.in_flight
            if request.committed != expected:
                yield Violation("kv_committed_len", expected, request.committed, request.number)

    def at_forward(self, forward: Forward) -> Findings:
        """A verify writes `tokens_each` entries from seq_lens on: their slots must be allocated."""
        if self.config.worker is not Worker.V2 or forward.mode != "TARGET_VERIFY" or forward.tokens_each is None:
            return
        for number, length, allocated in zip(
            forward.requests, forward.values("seq_lens"), forward.allocated, strict=True
        ):
            if length + forward.tokens_each > allocated:
                yield Violation("kv_allocated_len", f">= {length} + {forward.tokens_each}", allocated, number)
