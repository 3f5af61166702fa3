"""Fault 33: a decode step gets the lengths of a verify.

A verify's `seq_lens` end before the tokens that it reads, a decode's count the token: without the one more it reads the
new token at the last one's position and never sees its own entry.
"""

from copy import copy
from typing import Any

import torch
from sglang.srt.speculative.spec_info import SpeculativeAlgorithm

from harness.toggle.plain_target import Decoded

WORKER = "v2"


def worker(toggled: type) -> type:
    """The toggled class, not advancing the lengths for the forward."""

    class Fault(toggled):
        def _decode(self, batch: Any, seq_lens: torch.Tensor) -> Decoded:
            slots = self.req_to_token_pool.req_to_token[batch.req_pool_indices, batch.seq_lens]
            decode = copy(batch)
            decode.input_ids, decode.out_cache_loc = batch.spec_info.bonus_tokens.to(torch.int64), slots.to(torch.int64)
            decode.spec_algorithm, decode.spec_info = SpeculativeAlgorithm.NONE, None
            return self.toggle.target.decode(decode)

    return Fault
