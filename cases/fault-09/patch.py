"""Fault 9: `seq_lens_sum` is stale on a plain step.

v1's verify advances `seq_lens` and leaves the sum, which a spec step computes anew when it drafts and a plain engine
never lets go wrong.
"""

from typing import Any

from sglang.srt.speculative.spec_info import SpeculativeAlgorithm

from harness.toggle.plain_target import Decoded, attributes

WORKER = "v1"


def worker(toggled: type) -> type:
    """The toggled class, trusting the sum that it finds."""

    class Fault(toggled):
        def _decode(self, batch: Any) -> Decoded:
            batch.output_ids = batch.spec_info.bonus_tokens
            batch.return_hidden_states = False
            with attributes(batch, spec_algorithm=SpeculativeAlgorithm.NONE, spec_info=None):
                batch.prepare_for_decode()
                worker_batch = batch.get_model_worker_batch()
            return self.toggle.target.decode(worker_batch)

    return Fault
