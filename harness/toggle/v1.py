"""`EAGLEWorker` (v1: no overlap scheduling) that decodes plainly above the threshold."""

from typing import Any

import torch
from sglang.srt.managers.scheduler import GenerationBatchResult
from sglang.srt.speculative.eagle_worker import EAGLEWorker
from sglang.srt.speculative.spec_info import SpeculativeAlgorithm

from harness.toggle.drafted import caught_up
from harness.toggle.plain_target import Decoded, attributes
from harness.toggle.schedule import Schedule


class ToggledEAGLEWorker(EAGLEWorker):  # type: ignore[misc]
    """Spec steps are the parent's. A plain step is SGLang's own decode step, and the draft's part is its strategy's."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.toggle = Schedule(self, self.draft_model_runner)

    def forward_batch_generation(self, batch: Any) -> GenerationBatchResult:
        """One step of a `ScheduleBatch`, of whatever kind."""
        if batch.forward_mode.is_extend() or batch.is_extend_in_batch:
            caught_up(batch.reqs)
            return super().forward_batch_generation(batch)
        if self.toggle.switch.speculates(batch.batch_size()):
            self.toggle.draft.catch_up(batch)
            return super().forward_batch_generation(batch)
        return self._plain_step(batch)

    def _plain_step(self, batch: Any) -> GenerationBatchResult:
        decoded = self._decode(batch)
        # On its way to the host before the draft's forward, so that requests are settled while that runs.
        tokens = decoded.tokens.to("cpu", non_blocking=True)
        sampled = torch.get_device_module(self.device).Event()
        sampled.record()
        batch.spec_info = self.toggle.draft.follow(decoded)
        sampled.synchronize()
        running = settle(batch, decoded.result, tokens.tolist())
        if len(running) < len(batch.reqs):  # the scheduler filters the requests, and trusts v1's worker with the rest
            rows = torch.tensor(running, dtype=torch.int64, device=batch.spec_info.bonus_tokens.device)
            batch.spec_info.filter_batch(rows, has_been_filtered=False)
        return decoded.result

    def _decode(self, batch: Any) -> Decoded:
        """The target's forward and sampling, prepared by the code that prepares a plain engine's."""
        batch.output_ids = batch.spec_info.bonus_tokens
        batch.seq_lens_sum = int(batch.seq_lens_cpu.sum())  # a spec step leaves it stale
        batch.return_hidden_states = False
        with attributes(batch, spec_algorithm=SpeculativeAlgorithm.NONE, spec_info=None):
            batch.prepare_for_decode()
            worker_batch = batch.get_model_worker_batch()
        return self.toggle.target.decode(worker_batch)


def settle(batch: Any, result: GenerationBatchResult, tokens: list[int]) -> list[int]:
    """Give each request its token, as `EagleVerifyInput.verify` does, and return the rows that go on.

    `Scheduler.process_batch_result_decode` leaves this to v1's worker.
    """
    if batch.return_logprob:
        _record_logprobs(batch.reqs, result.logits_output, tokens)
    running = []
    think_end_id = batch.model_config.think_end_id
    for row, (request, token) in enumerate(zip(batch.reqs, tokens, strict=True)):
        request.output_ids.append(token)
        if request.require_reasoning and think_end_id is not None:
            request.update_reasoning_tokens(token, think_end_id)
        request.check_finished()
        if not request.finished() and request.grammar is not None:
            request.grammar.accept_token(token)
            request.check_finished()
        if not request.finished():
            running.append(row)
        # Counted as a verify that accepted no draft, as V2's post-processing does.
        request.spec_verify_ct += 1
        request.update_spec_correct_drafts_histogram(0)
    result.num_correct_drafts_per_req_cpu = [0] * len(tokens)
    return running


def _record_logprobs(requests: list[Any], logits_output: Any, tokens: list[int]) -> None:
    """Add the sampler's logprobs to the requests, as `add_output_logprobs_for_spec_v1` does for accepted tokens."""
    values = logits_output.next_token_logprobs.tolist()
    for row, request in enumerate(requests):
        if not request.return_logprob:
            continue
        request.output_token_logprobs_val.append(values[row])
        request.output_token_logprobs_idx.append(tokens[row])
        if request.top_logprobs_num > 0:
            request.output_top_logprobs_val.append(_listed(logits_output.next_token_top_logprobs_val[row]))
            request.output_top_logprobs_idx.append(_listed(logits_output.next_token_top_logprobs_idx[row]))
        if request.token_ids_logprob is not None:
            request.output_token_ids_logprobs_val.append(_listed(logits_output.next_token_token_ids_logprobs_val[row]))
            request.output_token_ids_logprobs_idx.append(_listed(logits_output.next_token_token_ids_logprobs_idx[row]))


def _listed(values: Any) -> Any:
    return values.tolist() if isinstance(values, torch.Tensor) else values
