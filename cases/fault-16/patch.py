"""Fault 16: a plain step reads `batch.output_ids`, as a plain engine's decode step does.

After a prefill or a plain step that is the last token of each request; after v1's verify it is the flat list of all
accepted tokens.
"""

from typing import Any

from sglang.srt.speculative.spec_info import SpeculativeAlgorithm

from harness.toggle.plain_target import Decoded, attributes

WORKER = "v1"


def worker(toggled: type) -> type:
    """The toggled class, without handing the bonus tokens over."""

    class Fault(toggled):
        def _decode(self, batch: Any) -> Decoded:
            batch.seq_lens_sum = int(batch.seq_lens_cpu.sum())
            batch.return_hidden_states = False
            with attributes(batch, spec_algorithm=SpeculativeAlgorithm.NONE, spec_info=None):
                batch.prepare_for_decode()
                worker_batch = batch.get_model_worker_batch()
            return self.toggle.target.decode(worker_batch)

    return Fault
