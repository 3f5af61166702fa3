"""Fault 3: speculation is cleared on the worker batch only.

The forward then isn't speculative, but the `ScheduleBatch` still is, for which `prepare_for_decode` prepares nothing:
the forward reads whatever tokens and slots the last prefill or spec step left.
"""

from typing import Any

from sglang.srt.speculative.spec_info import SpeculativeAlgorithm

from harness.toggle.plain_target import Decoded

WORKER = "v1"


def worker(toggled: type) -> type:
    """The toggled class, with speculation cleared too late."""

    class Fault(toggled):
        def _decode(self, batch: Any) -> Decoded:
            batch.output_ids = batch.spec_info.bonus_tokens
            batch.seq_lens_sum = int(batch.seq_lens_cpu.sum())
            batch.prepare_for_decode()
            worker_batch = batch.get_model_worker_batch()
            worker_batch.spec_algorithm, worker_batch.spec_info = SpeculativeAlgorithm.NONE, None
            return self.toggle.target.decode(worker_batch)

    return Fault
