"""The target's part of a plain step: SGLang's own decode forward, on an attention backend and graphs of its own.

Nothing is shared with the graphs of spec steps, whose buffers `init_cuda_graph_state` would rebind. SGLang's adaptive
speculation (`SpecRuntimeState`, speculative/adaptive_runtime_state.py) keeps its states apart the same way. Where it
verifies a tree of one node this decodes: the same tokens and hidden states, from the kernel made for one query.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from sglang.srt.managers.scheduler import GenerationBatchResult
from sglang.srt.model_executor.cuda_graph_runner import CudaGraphRunner
from sglang.srt.model_executor.forward_batch_info import CaptureHiddenMode, ForwardBatch
from sglang.srt.speculative.spec_info import SpeculativeAlgorithm


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


class PlainGraphRunner(CudaGraphRunner):  # type: ignore[misc]
    """DECODE graphs, 1 token a request, that return the hidden states which the draft needs."""

    def capture(self) -> None:
        """Capture, once: `CudaGraphRunner` starts without hidden states and would capture anew at the first replay."""
        self.capture_hidden_mode = CaptureHiddenMode.FULL
        super().capture()

    def recapture_if_needed(self, forward_batch: Any) -> None:
        """Never; raises RuntimeError for a batch that asks for other hidden states than were captured."""
        if forward_batch.capture_hidden_mode is not CaptureHiddenMode.FULL:
            raise RuntimeError(f"a plain step asks for {forward_batch.capture_hidden_mode}, its graphs return FULL")


@dataclass(slots=True)
class Decoded:
    """A plain step after the target's forward and sampling."""

    batch: ForwardBatch
    result: GenerationBatchResult

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

    def decode(self, batch: Any) -> Decoded:
        """Forward and sample a `ModelWorkerBatch` that is prepared for DECODE."""
        batch.capture_hidden_mode = CaptureHiddenMode.FULL
        self._worker.set_hicache_consumer(batch.hicache_consumer_index)
        with attributes(self._runner, attn_backend=self.backend, graph_runner=self.graphs):
            forward_batch = ForwardBatch.init_new(batch, self._runner)
            output = self._runner.forward(forward_batch)
        result = GenerationBatchResult(
            logits_output=output.logits_output,
            can_run_cuda_graph=output.can_run_graph,
            next_token_ids=self._runner.sample(output.logits_output, forward_batch),
            expert_distribution_metrics=output.expert_distribution_metrics,
            routed_experts_output=output.routed_experts_output,
            indexer_topk_output=output.indexer_topk_output,
        )
        return Decoded(forward_batch, result)
