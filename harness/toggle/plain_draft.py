"""The draft's part of strategy `warm`: after each plain step one forward over the tokens just sampled.

So its KV never falls behind. The forward reads the same positions, slots and lengths as the target's of the same step,
and the hidden states that this returned: draft entry p is of token p + 1 and the target's hidden state at p (EAGLE-3,
arXiv:2503.01840). SGLang extends the draft after each verify (`forward_draft_extend_after_decode`); with one token a
request that is a decode forward.
"""

from copy import copy
from typing import Any

import torch
from sglang.srt.distributed.parallel_state import graph_capture
from sglang.srt.layers.dp_attention import set_is_extend_in_batch
from sglang.srt.layers.moe.utils import speculative_moe_a2a_backend_context, speculative_moe_backend_context
from sglang.srt.model_executor.cuda_graph_runner import get_global_graph_memory_pool, model_capture_mode
from sglang.srt.model_executor.forward_batch_info import CaptureHiddenMode, ForwardBatch, ForwardMode
from sglang.srt.speculative.eagle_info import EagleDraftInput
from sglang.srt.speculative.spec_utils import fast_topk

from harness.toggle.plain_input import PlainDraftInput
from harness.toggle.plain_target import Decoded, PlainGraphRunner, plan, plans_in_graph

Proposal = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
"""`topk_p` (float32) and `topk_index` (int64), both (batch size, topk), and `hidden_states` (batch size, width)."""


class PlainDraft:
    """Follows the target's decode forward on the draft model."""

    def __init__(self, runner: Any, topk: int, target_graphs: PlainGraphRunner | None) -> None:
        """Capture graphs at the sizes of the target's; `runner` is the draft's `ModelRunner`."""
        self._runner, self._topk = runner, topk
        self.backend, self.graphs = runner.attn_backend, None
        if target_graphs is not None:
            self.backend = runner._get_attention_backend(init_new_workspace=True)
            with speculative_moe_backend_context(), speculative_moe_a2a_backend_context():
                self.graphs = DraftGraphs(runner, self.backend, topk, target_graphs)

    def catch_up(self, _: Any) -> None:
        """Before a spec step: nothing, the draft is never behind."""

    def follow(self, decoded: Decoded) -> PlainDraftInput:
        """Write the draft's KV and propose the next tokens: what the next spec step drafts from."""
        tokens = decoded.tokens
        if self.graphs is not None and decoded.result.can_run_cuda_graph:
            topk_p, topk_index, hidden_states = self.graphs.replay(tokens, decoded.batch)
        else:
            with speculative_moe_backend_context(), speculative_moe_a2a_backend_context():
                topk_p, topk_index, hidden_states = self._eager(tokens, decoded)
        return PlainDraftInput(
            bonus_tokens=tokens,
            topk_p=topk_p,
            topk_index=topk_index,
            hidden_states=hidden_states,
            capture_hidden_mode=CaptureHiddenMode.LAST,
        )

    def _eager(self, tokens: torch.Tensor, decoded: Decoded) -> Proposal:
        batch = copy(decoded.batch)
        batch.input_ids = tokens.to(torch.int64)
        batch.token_to_kv_pool, batch.attn_backend = self._runner.token_to_kv_pool, self.backend
        batch.capture_hidden_mode, batch.return_logprob = CaptureHiddenMode.LAST, False
        self.backend.init_forward_metadata(batch)  # plans a plain decode; with spec_info it would plan a draft's
        batch.spec_info = EagleDraftInput(hidden_states=decoded.result.logits_output.hidden_states)
        output = self._runner.forward(batch, skip_attn_backend_init=True).logits_output
        return propose(output, self._topk)


def propose(output: Any, topk: int) -> Proposal:
    """What a forward of the draft, as a `LogitsProcessorOutput` with its last hidden states, proposes next."""
    topk_p, topk_index = fast_topk(torch.softmax(output.next_token_logits, dim=-1), topk, dim=-1)
    return topk_p, topk_index, output.hidden_states


class DraftGraphs:
    """Graphs of the draft's forward, each to be replayed right after the target's graph of the same size.

    They read the target's graph inputs and its hidden states where they lie, so that only the tokens are copied.

    Where the host plans their attention it does so before the target's replay. A plan of FlashInfer's is copied to the
    device from pinned memory (flashinfer/attention/scheduler.cuh), which the plan of the next step overwrites. Behind
    the target's forward that copy would still wait when V2's host, which doesn't wait for the forward, is so far.
    """

    def __init__(self, runner: Any, backend: Any, topk: int, target: PlainGraphRunner) -> None:
        self._runner, self.backend, self._topk, self._target = runner, backend, topk, target
        self.capture_bs: list[int] = target.capture_bs
        self._plans_in_graph = plans_in_graph(backend)
        if not self._plans_in_graph:
            target.before_replay.append(self._plan)
        self._tokens = torch.zeros(target.max_bs, dtype=torch.int64, device=runner.device)
        backend.init_cuda_graph_state(target.max_bs, target.max_bs)
        self._graphs: dict[int, tuple[Any, Proposal]] = {}
        with model_capture_mode(), graph_capture() as context:
            for size in reversed(target.capture_bs):
                self._graphs[size] = self._capture(size, context.stream)

    @property
    def buffers(self) -> list[torch.Tensor]:
        """The captured input and outputs."""
        return [self._tokens, *(tensor for _, proposal in self._graphs.values() for tensor in proposal)]

    def replay(self, tokens: torch.Tensor, batch: ForwardBatch) -> Proposal:
        """Forward the batch that the target has just replayed; results are valid until the next replay."""
        requests = batch.batch_size
        self._tokens[:requests].copy_(tokens)
        graph, (topk_p, topk_index, hidden_states) = self._graphs[self._target.bs]
        graph.replay()
        return topk_p[:requests], topk_index[:requests], hidden_states[:requests]

    def _plan(self, batch: ForwardBatch) -> None:
        target = self._target
        seq_lens_sum = batch.seq_lens_sum + (target.bs - batch.batch_size) * target.seq_len_fill_value
        plan(self.backend, target.buffers, target.bs, seq_lens_sum)

    def _capture(self, size: int, stream: Any) -> tuple[Any, Proposal]:
        batch = self._captured_batch(size)
        self.backend.init_forward_metadata_capture_cuda_graph(
            size, size, batch.req_pool_indices, batch.seq_lens, None, ForwardMode.DECODE, None
        )

        def forward() -> Proposal:
            set_is_extend_in_batch(False)
            if self._plans_in_graph:
                plan(self.backend, self._target.buffers, size, batch.seq_lens_sum)
            return propose(self._runner.model.forward(batch.input_ids, batch.positions, batch), self._topk)

        for _ in range(2):  # kernels compile and libraries initialise outside of the capture
            self._target.device_module.synchronize()
            self._runner.tp_group.barrier()
            forward()
        graph = self._target._create_device_graph()
        return graph, self._target._capture_graph(graph, get_global_graph_memory_pool(), stream, forward)

    def _captured_batch(self, size: int) -> ForwardBatch:
        inputs, target = self._target.buffers, self._target
        hidden_states = target.output_buffers[size].hidden_states
        return ForwardBatch(
            forward_mode=ForwardMode.DECODE,
            batch_size=size,
            input_ids=self._tokens[:size],
            req_pool_indices=inputs.req_pool_indices[:size],
            seq_lens=inputs.seq_lens[:size],
            seq_lens_cpu=inputs.seq_lens_cpu[:size],
            orig_seq_lens=inputs.seq_lens[:size],
            out_cache_loc=inputs.out_cache_loc[:size],
            positions=inputs.positions[:size],
            mrope_positions=inputs.mrope_positions[:, :size],
            seq_lens_sum=size * target.seq_len_fill_value,
            return_logprob=False,
            req_to_token_pool=self._runner.req_to_token_pool,
            token_to_kv_pool=self._runner.token_to_kv_pool,
            attn_backend=self.backend,
            spec_algorithm=self._runner.spec_algorithm,
            spec_info=EagleDraftInput(hidden_states=hidden_states),
            capture_hidden_mode=CaptureHiddenMode.LAST,
        )
