"""What a plain step leaves for the next step, and what V2's scheduler does with it first: allocate."""

from dataclasses import dataclass
from typing import Any

import torch
from sglang.srt.managers.utils import get_alloc_len_per_decode
from sglang.srt.mem_cache.common import alloc_token_slots
from sglang.srt.speculative.eagle_info import EagleDraftInput
from sglang.srt.speculative.spec_utils import assign_req_to_token_pool_func

ALIGNED = 4
"""int32 entries of a row that a kernel takes for aligned: it would be compiled once more for others."""


@dataclass
class PlainDraftInput(EagleDraftInput):  # type: ignore[misc]
    """What a plain step leaves for the next step, whichever kind that is: of all its requests, in their order."""

    def prepare_for_decode(self, batch: Any) -> None:
        """The parent's, with one transfer to the device, that nothing waits for, in place of two.

        It allocates ahead by two spec steps, whatever the next step is. With larger pages or a penalty it is the
        parent's own.
        """
        penalised = batch.sampling_info.penalizer_orchestrator.is_required
        if penalised or batch.token_to_kv_pool_allocator.page_size > 1:
            super().prepare_for_decode(batch)
            return
        batch.maybe_evict_swa()
        batch.maybe_wait_verify_done()
        owned, wanted = _advance(batch.reqs, 2 * get_alloc_len_per_decode())
        slots = alloc_token_slots(batch.tree_cache, sum(wanted) - sum(owned))
        requests = len(batch.reqs)
        filling = [0] * (-requests % ALIGNED)
        bounds = torch.tensor([owned + filling, wanted + filling], dtype=torch.int32)
        start, end = bounds.to(batch.device, non_blocking=True)
        table = batch.req_to_token_pool.req_to_token
        assign_req_to_token_pool_func(batch.req_pool_indices, table, start, end, slots, requests)
        batch.seq_lens_cpu = batch.seq_lens.cpu()
        batch.seq_lens_sum = sum(batch.seq_lens_cpu.tolist())


def _advance(requests: list[Any], ahead: int) -> tuple[list[int], list[int]]:
    """Claim the slot of each request's next token, and those `ahead`; lengths allocated before and after."""
    owned, wanted = [], []
    for request in requests:
        owned.append(request.kv_allocated_len)
        wanted.append(max(request.kv_allocated_len, request.kv_committed_len + ahead))
        request.kv_allocated_len = wanted[-1]
        request.kv_committed_len += 1
        request.decode_batch_idx += 1
    return owned, wanted
