"""The draft's part of strategy `plain`: nothing while speculation is off, and one draft extend when it comes back.

Plain steps keep what the extend reads (`Kept`). A request whose ring is full is caught up at once, and all others of
the batch along with it: at most one such extend in as many plain steps as a ring has places.
"""

from types import SimpleNamespace
from typing import Any

import torch
from sglang.srt.layers.moe.utils import speculative_moe_a2a_backend_context, speculative_moe_backend_context
from sglang.srt.managers.schedule_batch import Req
from sglang.srt.model_executor.forward_batch_info import (
    CaptureHiddenMode,
    ForwardBatch,
    ForwardMode,
    compute_position,
)
from sglang.srt.speculative.eagle_info import EagleDraftInput

from harness.toggle.drafted import DRAFTED, caught_up, drafted_len, fall_behind
from harness.toggle.kept import Kept
from harness.toggle.plain_draft import Proposal, propose
from harness.toggle.plain_input import PlainDraftInput
from harness.toggle.plain_target import Decoded
from harness.toggle.spans import Span, chunks


class LaggingDraft:
    """Keeps what plain steps make, and extends the draft over it when its KV is needed."""

    graphs = None

    def __init__(self, runner: Any, topk: int, kept: Kept, most: int) -> None:
        """`runner` is the draft's `ModelRunner`; `most` the tokens of one extend, as many as a prefill may have."""
        _check_hooked()
        self._runner, self._topk, self._most = runner, topk, most
        self.backend, self.kept = runner.attn_backend, kept
        self._nothing = _no_proposal(runner, topk)

    def follow(self, decoded: Decoded) -> PlainDraftInput:
        """Keep what a plain step made. What the next step drafts from is zeros, of the right shapes, until it is due.

        The scheduler merges and filters it, and V2's future map copies it, whatever it says.
        """
        batch, tokens = decoded.batch, decoded.tokens
        self.kept.keep(batch.req_pool_indices, batch.positions, tokens, decoded.result.logits_output.hidden_states)
        topk_p, topk_index, hidden_states = (part[: len(tokens)] for part in self._nothing)
        draft_input = PlainDraftInput(
            bonus_tokens=tokens,
            topk_p=topk_p,
            topk_index=topk_index,
            hidden_states=hidden_states,
            capture_hidden_mode=CaptureHiddenMode.LAST,
        )
        lengths = batch.seq_lens_cpu.tolist()
        if max(map(fall_behind, decoded.requests, lengths)) >= self.kept.each:
            self._extend(decoded.requests, batch.req_pool_indices, lengths, draft_input)
        return draft_input

    def catch_up(self, batch: Any) -> None:
        """Before a spec step of a `ScheduleBatch` or `ModelWorkerBatch`: write what is missing of the draft's KV."""
        self._extend(batch.reqs, batch.req_pool_indices, batch.seq_lens_cpu.tolist(), batch.spec_info)

    def _extend(self, requests: list[Any], rows: torch.Tensor, lengths: list[int], draft_input: Any) -> None:
        """Write draft KV up to `lengths`, and have those who lagged propose anew in `draft_input`."""
        spans = [
            Span(place, start, length)
            for place, (request, length) in enumerate(zip(requests, lengths, strict=True))
            if (start := drafted_len(request, length)) < length
        ]
        for chunk in chunks(spans, self._most):
            places, batch = self._batch(chunk, rows)
            with speculative_moe_backend_context(), speculative_moe_a2a_backend_context():
                output = self._runner.forward(batch).logits_output
            # Of a span that was cut the last part proposes, because it is the last to be copied.
            topk_p, topk_index, hidden_states = propose(output, self._topk)
            draft_input.topk_p = draft_input.topk_p.index_copy(0, places, topk_p)
            draft_input.topk_index = draft_input.topk_index.index_copy(0, places, topk_index)
            draft_input.hidden_states = draft_input.hidden_states.index_copy(0, places, hidden_states)
        caught_up(requests)

    def _batch(self, chunk: list[Span], rows: torch.Tensor) -> tuple[torch.Tensor, ForwardBatch]:
        """Each span's place in `rows`, and a prefill of the draft over the spans, of what was kept."""
        runner, lengths = self._runner, [span.end - span.start for span in chunk]
        spans = torch.tensor([[span.place, span.start, span.end] for span in chunk]).T
        places, starts, ends = spans.to(runner.device, non_blocking=True)
        count = sum(lengths)
        extended = (ends - starts).to(torch.int32)
        prefixes = starts.to(torch.int32)
        backend = runner.server_args.attention_backend
        positions, start_loc = compute_position(backend, prefixes, extended, count)
        rows = rows[places]
        row_of_each = rows.repeat_interleave(extended, output_size=count)
        tokens, hidden_states = self.kept.take(row_of_each, positions)
        return places, ForwardBatch(
            forward_mode=ForwardMode.EXTEND,
            batch_size=len(chunk),
            input_ids=tokens,
            req_pool_indices=rows,
            seq_lens=ends,
            seq_lens_cpu=spans[2],
            seq_lens_sum=int(spans[2].sum()),
            orig_seq_lens=ends.to(torch.int32),
            out_cache_loc=runner.req_to_token_pool.req_to_token[row_of_each, positions].to(torch.int64),
            positions=positions,
            extend_num_tokens=count,
            extend_seq_lens=extended,
            extend_prefix_lens=prefixes,
            extend_start_loc=start_loc,
            extend_seq_lens_cpu=lengths,
            extend_prefix_lens_cpu=[span.start for span in chunk],
            num_token_non_padded_cpu=count,
            lora_ids=[None] * len(chunk),  # `_pad_inputs_to_size` extends them where attention inputs are scattered
            req_to_token_pool=runner.req_to_token_pool,
            token_to_kv_pool=runner.token_to_kv_pool,
            attn_backend=runner.attn_backend,
            spec_algorithm=runner.spec_algorithm,
            spec_info=EagleDraftInput(
                hidden_states=hidden_states, num_tokens_per_req=1, num_tokens_for_logprob_per_req=1
            ),
            capture_hidden_mode=CaptureHiddenMode.LAST,
        )


def _check_hooked() -> None:
    """SGLang logs a hook that it can't apply, and goes on: without this one lagging KV would be cached."""
    lagging = SimpleNamespace(kv_committed_len=2, reasoning_tokens=0, **{DRAFTED: 1})
    if Req._cache_commit_len(lagging) != 1:
        raise RuntimeError("strategy plain isn't installed: Req._cache_commit_len doesn't heed what was drafted")


def _no_proposal(runner: Any, topk: int) -> Proposal:
    """Zeros for as many requests as may run, in the draft's own shapes."""
    rows, device, draft = len(runner.req_to_token_pool.req_to_token), runner.device, runner.model_config
    return (
        torch.zeros(rows, topk, dtype=torch.float32, device=device),
        torch.zeros(rows, topk, dtype=torch.int64, device=device),
        torch.zeros(rows, draft.spec_hidden_size, dtype=draft.dtype, device=device),
    )
