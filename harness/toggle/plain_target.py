"""The target's part of a plain step: SGLang's own decode forward, on an attention backend and graphs of its own.

Nothing is shared with the graphs of spec steps, whose buffers `init_cuda_graph_state` would rebind. SGLang's adaptive
speculation (`SpecRuntimeState`, speculative/adaptive_runtime_state.py) keeps its states apart the same way. Where it
verifies a tree of one node this decodes: the same tokens and hidden states, from the kernel made for one query.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any

import torch
from sglang.srt.layers.attention.triton_backend import TritonAttnBackend
from sglang.srt.managers.scheduler import GenerationBatchResult
from sglang.srt.model_executor.cuda_graph_runner import CudaGraphRunner
from sglang.srt.model_executor.forward_batch_info import (
    CaptureHiddenMode,
    ForwardBatch,
    ForwardMode,
    enable_num_token_non_padded,
)
from sglang.srt.speculative.spec_info import SpeculativeAlgorithm

AUX_LAYERS = 3
"""Whose hidden states `set_eagle3_layers_to_capture` (models/llama.py and others) has returned, unless it is told."""


@contextmanager
def attributes(owner: Any, **values: Any) -> Iterator[None]:
    """Set attributes of `owner` for a while."""
    before = {name: getattr(owner, name) for name in values}
    for name, value in values.items():
        setattr(owner, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(owner, name, value)


def plans_in_graph(backend: Any) -> bool:
    """Whether a decode's attention metadata is made by the device alone, so that a graph can make it.

    Triton's is; its host would launch eight kernels a step for it. With a sliding window it reads a length on the host,
    as other backends do.
    """
    return isinstance(backend, TritonAttnBackend) and not backend.sliding_window_size


def plan(backend: Any, inputs: Any, size: int, seq_lens_sum: int) -> None:
    """Make the attention metadata of `size` requests from the inputs of a graph."""
    backend.init_forward_metadata_replay_cuda_graph(
        size,
        inputs.req_pool_indices[:size],
        inputs.seq_lens[:size],
        seq_lens_sum,
        None,
        ForwardMode.DECODE,
        None,
        seq_lens_cpu=inputs.seq_lens_cpu[:size],
    )


class PlainGraphRunner(CudaGraphRunner):  # type: ignore[misc]
    """DECODE graphs, 1 token a request, that return the hidden states which the draft needs.

    Where the device plans its attention alone they begin with that.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.before_replay: list[Callable[[ForwardBatch], None]] = []
        """What is to be launched, in this order, between the inputs of a graph and its replay."""
        super().__init__(*args, **kwargs)

    def capture(self) -> None:
        """Capture, once: `CudaGraphRunner` starts without hidden states and would capture anew at the first replay."""
        self.capture_hidden_mode = CaptureHiddenMode.FULL
        super().capture()

    def capture_one_batch_size(self, bs: int, forward: Callable[..., Any], stream_idx: int | None = None) -> Any:
        """The graph of one size, and its outputs."""
        return super().capture_one_batch_size(bs, self._planned(forward, bs), stream_idx)

    def _planned(self, forward: Callable[..., Any], size: int) -> Callable[..., Any]:
        if not plans_in_graph(self.attn_backend):
            return forward

        @wraps(forward)
        def planned(*args: Any, **kwargs: Any) -> Any:
            plan(self.attn_backend, self.buffers, size, size * self.seq_len_fill_value)
            return forward(*args, **kwargs)

        return planned

    def replay_prepare(self, forward_batch: Any, pp_proxy_tensors: Any = None) -> None:
        """Fill the inputs of the smallest graph that fits, and launch what is to come before its replay."""
        if plans_in_graph(self.attn_backend):
            self._fill(forward_batch, pp_proxy_tensors)
        else:
            super().replay_prepare(forward_batch, pp_proxy_tensors)
        for launch in self.before_replay:
            launch(forward_batch)

    def _fill(self, forward_batch: Any, pp_proxy_tensors: Any) -> None:
        """The parent's `replay_prepare`, without planning what the graph plans."""
        self.recapture_if_needed(forward_batch)
        requests = forward_batch.batch_size
        self.raw_bs = self.raw_num_token = requests
        self.bs = self.capture_bs[bisect_left(self.capture_bs, requests)]
        self.buffers.populate_from_forward_batch(
            forward_batch=forward_batch,
            raw_bs=requests,
            raw_num_token=requests,
            bs=self.bs,
            seq_len_fill_value=self.seq_len_fill_value,
            require_gathered_buffer=self.require_gathered_buffer,
            num_tokens_per_bs=1,
            nsa_enable_prefill_cp=self.nsa_enable_prefill_cp,
            enable_num_token_non_padded_flag=enable_num_token_non_padded(),
            pp_proxy_tensors=pp_proxy_tensors,
        )

    def recapture_if_needed(self, forward_batch: Any) -> None:
        """Never; raises RuntimeError for a batch that asks for other hidden states than were captured."""
        if forward_batch.capture_hidden_mode is not CaptureHiddenMode.FULL:
            raise RuntimeError(f"a plain step asks for {forward_batch.capture_hidden_mode}, its graphs return FULL")


@dataclass(slots=True)
class Decoded:
    """A plain step after the target's forward and sampling."""

    batch: ForwardBatch
    result: GenerationBatchResult
    requests: list[Any]
    """`Req` (managers/schedule_batch.py), as in the batch."""

    @property
    def tokens(self) -> torch.Tensor:
        """The sampled tokens, int64 or int32, shape (batch size,)."""
        sampled: torch.Tensor = self.result.next_token_ids
        return sampled


class PlainTarget:
    """Decodes one token a request on the target model."""

    def __init__(self, worker: Any, sizes: list[int]) -> None:
        """Capture graphs at `sizes`, in requests; with none, decode eagerly on the target's own attention backend.

        `worker` is the target's `TpModelWorker`.
        """
        self._worker = worker
        self._runner = runner = worker.model_runner
        self.backend, self.graphs = runner.attn_backend, None
        if sizes:
            with attributes(
                runner, spec_algorithm=SpeculativeAlgorithm.NONE, init_new_workspace=runner.init_new_workspace
            ):
                self.backend = runner._get_attention_backend(init_new_workspace=True)
                self.graphs = PlainGraphRunner(runner, attn_backend=self.backend)

    @property
    def hidden_width(self) -> int:
        """Of the hidden states that a plain step returns: EAGLE-3's draft takes those of several layers, side by side.

        Which, `ModelRunner.init_aux_hidden_state_capture` (model_executor/model_runner.py) has told the model.
        """
        runner = self._runner
        layers, width = AUX_LAYERS, runner.model_config.hidden_size
        if not runner.eagle_use_aux_hidden_state:
            layers, width = 1, runner.model_config.spec_hidden_size
        elif runner.eagle_aux_hidden_state_layer_ids is not None:
            layers = len(runner.eagle_aux_hidden_state_layer_ids)
        total: int = layers * width
        return total

    def decode(self, batch: Any) -> Decoded:
        """Forward and sample a `ModelWorkerBatch` that is prepared for DECODE."""
        batch.capture_hidden_mode = CaptureHiddenMode.FULL
        self._worker.set_hicache_consumer(batch.hicache_consumer_index)
        runner = self._runner
        spec = runner.attn_backend, runner.graph_runner
        runner.attn_backend, runner.graph_runner = self.backend, self.graphs
        try:
            forward_batch = ForwardBatch.init_new(batch, runner)
            output = runner.forward(forward_batch)
        finally:
            runner.attn_backend, runner.graph_runner = spec
        result = GenerationBatchResult(
            logits_output=output.logits_output,
            can_run_cuda_graph=output.can_run_graph,
            next_token_ids=runner.sample(output.logits_output, forward_batch),
            expert_distribution_metrics=output.expert_distribution_metrics,
            routed_experts_output=output.routed_experts_output,
            indexer_topk_output=output.indexer_topk_output,
        )
        return Decoded(forward_batch, result, batch.reqs)
