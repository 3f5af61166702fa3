"""Fault 20: the lengths on the host aren't advanced with those on the device.

V2 reads them back from the device before each step, so that nothing but the plain step itself sees the old ones.
"""

from copy import copy
from typing import Any

import torch
from sglang.srt.speculative.spec_info import SpeculativeAlgorithm

from harness.toggle.plain_target import Decoded

WORKER = "v2"


def worker(toggled: type) -> type:
    """The toggled class, with stale lengths on the host."""

    class Fault(toggled):
        def _decode(self, batch: Any, seq_lens: torch.Tensor) -> Decoded:
            slots = self.req_to_token_pool.req_to_token[batch.req_pool_indices, batch.seq_lens]
            decode = copy(batch)
            decode.input_ids, decode.out_cache_loc = batch.spec_info.bonus_tokens.to(torch.int64), slots.to(torch.int64)
            decode.seq_lens, decode.seq_lens_sum = seq_lens, batch.seq_lens_sum + len(seq_lens)
            decode.spec_algorithm, decode.spec_info = SpeculativeAlgorithm.NONE, None
            return self.toggle.target.decode(decode)

    return Fault
