"""`EAGLEWorkerV2` (topk 1, overlap scheduling) that decodes plainly above the threshold."""

from functools import cache
from typing import Any

import torch
from sglang.srt.managers.scheduler import GenerationBatchResult
from sglang.srt.speculative.eagle_worker_v2 import EAGLEWorkerV2
from sglang.srt.speculative.spec_info import SpeculativeAlgorithm

from harness.toggle.drafted import caught_up
from harness.toggle.plain_target import Decoded
from harness.toggle.schedule import Schedule


class ToggledEAGLEWorkerV2(EAGLEWorkerV2):  # type: ignore[misc]
    """Spec steps are the parent's. A plain step is the target's decode step, and the draft's part is its strategy's.

    Allocation stays the parent's, which looks ahead by the largest step there is: a batch prepared before a switch may
    run after it.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.toggle = Schedule(self, self.draft_worker.draft_runner)
        self._streams = torch.get_device_module(self.device)
        self._planned: Any = None
        if self.toggle.target.graphs is not None:
            self.toggle.target.graphs.before_replay.append(lambda _: self._planned.record())

    def forward_batch_generation(self, model_worker_batch: Any) -> GenerationBatchResult:
        """One step of a `ModelWorkerBatch`, of whatever kind."""
        batch = model_worker_batch
        if batch.forward_mode.is_extend() or batch.is_extend_in_batch:
            caught_up(batch.reqs)
            return super().forward_batch_generation(batch)
        if self.toggle.switch.speculates(len(batch.seq_lens)):
            self.toggle.draft.catch_up(batch)
            return super().forward_batch_generation(batch)
        return self._plain_step(batch)

    def _plain_step(self, batch: Any) -> GenerationBatchResult:
        stream = self._streams.current_stream()
        # Allocated on the scheduler's stream: without this it could be reused while this stream still reads it.
        batch.seq_lens.record_stream(stream)
        seq_lens = batch.seq_lens + 1
        # The scheduler waits for this before it reads the lengths, and prepares the next step. A plain step knows them
        # before its forward. A replay records it once more, after what the host has planned and still before its
        # forward, lest the next step's plan overwrite this one's (`DraftGraphs`); an eager step's host plans in sync.
        self._planned = self._streams.Event()
        self._planned.record(stream)
        decoded = self._decode(batch, seq_lens)
        draft_input = self.toggle.draft.follow(decoded)
        draft_input.new_seq_lens, draft_input.verify_done = seq_lens, self._planned
        result = decoded.result
        result.next_draft_input = draft_input
        result.accept_lens = _one_each(len(decoded.tokens))
        result.speculative_num_draft_tokens = 1  # the stride of next_token_ids
        if batch.return_logprob:  # a row of accepted tokens for each request
            result.logits_output.next_token_logprobs = result.logits_output.next_token_logprobs.unsqueeze(1)
        return result

    def _decode(self, batch: Any, seq_lens: torch.Tensor) -> Decoded:
        """The target's forward and sampling, into the first of the slots that the scheduler allocated ahead."""
        slots = self.req_to_token_pool.req_to_token[batch.req_pool_indices, batch.seq_lens]
        decode = _copy(batch)
        decode.input_ids = batch.spec_info.bonus_tokens.to(torch.int64)
        decode.out_cache_loc = slots.to(torch.int64)
        decode.seq_lens, decode.seq_lens_cpu = seq_lens, batch.seq_lens_cpu + 1
        decode.seq_lens_sum = batch.seq_lens_sum + len(seq_lens)
        decode.spec_algorithm, decode.spec_info = SpeculativeAlgorithm.NONE, None
        return self.toggle.target.decode(decode)


@cache
def _one_each(requests: int) -> torch.Tensor:
    """Accepted lengths of a plain step; read on the host only."""
    return torch.ones(requests, dtype=torch.int32)


def _copy(batch: Any) -> Any:
    """What `copy.copy` returns for a `ModelWorkerBatch`, without asking how it might be pickled."""
    decode = object.__new__(type(batch))
    vars(decode).update(vars(batch))
    return decode
