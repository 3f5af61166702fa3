"""What both workers share: when to decode plainly, on what, by which strategy, and the line that says so at start."""

import gc
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from sglang.srt.utils import get_available_gpu_memory, log_info_on_rank0

from harness.toggle import support
from harness.toggle.agreement import check_agreement
from harness.toggle.kept import Kept
from harness.toggle.lagging_draft import LaggingDraft
from harness.toggle.plain_draft import PlainDraft
from harness.toggle.plain_target import PlainTarget, attributes
from harness.toggle.policy import Policy, Switch
from harness.toggle.settings import STRATEGY, THRESHOLD, Settings

logger = logging.getLogger(__name__)


class Schedule:
    """The switch of one worker, and the two halves of its plain steps, built once."""

    def __init__(self, worker: Any, draft_runner: Any) -> None:
        """Read the settings and capture; raises BadSetting, or Unsupported for the loaded models."""
        settings = Settings.read()
        if settings is None:
            raise RuntimeError("a toggled worker without a threshold")
        check_agreement(settings, draft_runner.tp_group)
        # Again: SGLang logs a hook that it can't apply, the one on `check_server_args` too, and goes on.
        support.refuse_server(worker.server_args, settings.strategy)
        support.refuse_models(worker.target_worker.model_runner, draft_runner, settings.strategy)
        self.switch = Switch(settings.policy)
        before = get_available_gpu_memory(worker.device, worker.gpu_id)
        sizes = _sizes(worker.server_args, settings.policy)
        # SGLang collects garbage around each capture, seconds in all; it needn't while none is collected meanwhile.
        with _no_garbage_collection(), attributes(worker.server_args, cuda_graph_bs=sizes, enable_cudagraph_gc=True):
            self.target = PlainTarget(worker.target_worker, sizes)
            self.draft = self._draft(settings, worker, draft_runner)
        self.memory_gb = before - get_available_gpu_memory(worker.device, worker.gpu_id)
        self._announce(settings)
        _warn(settings.policy, worker)

    def _draft(self, settings: Settings, worker: Any, runner: Any) -> PlainDraft | LaggingDraft:
        if settings.strategy == "warm":
            return PlainDraft(runner, worker.topk, self.target.graphs)
        width, dtype = self.target.hidden_width, worker.target_worker.model_runner.model_config.dtype
        if self.target.graphs is not None:  # without graphs only a forward would tell
            _check_captured(self.target.graphs, width, dtype)
        kept = Kept.empty(
            rows=len(runner.req_to_token_pool.req_to_token),
            each=settings.kept_tokens,
            width=width,
            dtype=dtype,
            device=runner.device,
        )
        return LaggingDraft(runner, worker.topk, kept, most=_prefill_tokens(worker.server_args))

    def _announce(self, settings: Settings) -> None:
        policy, graphs = settings.policy, self.target.graphs
        captured = f"plain graphs at {', '.join(map(str, graphs.capture_bs))}" if graphs else "no plain graphs"
        kept = f", {settings.kept_tokens} tokens kept of each request" if settings.strategy == "plain" else ""
        log_info_on_rank0(
            logger,
            f"Speculation toggle: strategy {settings.strategy}, off above {policy.threshold} running requests, "
            f"on again at {policy.resumes_at} or fewer, {captured}{kept}, {self.memory_gb:.2f} GB for plain steps",
        )


def _check_captured(graphs: Any, width: int, dtype: torch.dtype) -> None:
    captured = graphs.output_buffers[graphs.max_bs].hidden_states
    if (captured.shape[1], captured.dtype) != (width, dtype):
        raise support.Unsupported(
            f"the target returns hidden states {captured.shape[1]} wide in {captured.dtype}, its configuration says "
            f"{width} in {dtype}: use {STRATEGY}=warm for this model"
        )


def _warn(policy: Policy, worker: Any) -> None:
    """Log, on one rank, what may not be meant."""
    if worker.target_worker.tp_rank != 0:
        return
    for backend in support.Backends.of(worker.server_args).untested:
        logger.warning("The toggle wasn't tested with attention backend %s.", backend)
    # Known since the target's `ModelRunner` has sized its pools.
    most = worker.target_worker.max_running_requests
    if policy.threshold >= most:
        logger.warning(
            "Speculation is never off: %s=%d, and %d requests run at most (--max-running-requests).",
            THRESHOLD,
            policy.threshold,
            most,
        )


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _prefill_tokens(server_args: Any) -> int:
    """As many tokens as a prefill extends the draft by at most, for which there is memory."""
    chunk: int | None = server_args.chunked_prefill_size
    most: int = chunk if chunk is not None and chunk > 0 else server_args.max_prefill_tokens
    return most


def _sizes(server_args: Any, policy: Policy) -> list[int]:
    """The captured sizes that a plain step can be padded to."""
    captured = [] if server_args.disable_cuda_graph else server_args.cuda_graph_bs
    return [size for size in captured if size > policy.resumes_at]
