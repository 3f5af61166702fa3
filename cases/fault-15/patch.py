"""Fault 15: a plain step writes one slot too far.

The row of the table is read at the advanced lengths, which count the token about to be written: its entry lies at
`seq_lens`, one before.
"""

from copy import copy
from typing import Any

import torch
from sglang.srt.speculative.spec_info import SpeculativeAlgorithm

from harness.toggle.plain_target import Decoded

WORKER = "v2"


def worker(toggled: type) -> type:
    """The toggled class, writing behind the next position."""

    class Fault(toggled):
        def _decode(self, batch: Any, seq_lens: torch.Tensor) -> Decoded:
            slots = self.req_to_token_pool.req_to_token[batch.req_pool_indices, seq_lens]
            decode = copy(batch)
            decode.input_ids, decode.out_cache_loc = batch.spec_info.bonus_tokens.to(torch.int64), slots.to(torch.int64)
            decode.seq_lens, decode.seq_lens_cpu = seq_lens, batch.seq_lens_cpu + 1
            decode.seq_lens_sum = batch.seq_lens_sum + len(seq_lens)
            decode.spec_algorithm, decode.spec_info = SpeculativeAlgorithm.NONE, None
            return self.toggle.target.decode(decode)

    return Fault
