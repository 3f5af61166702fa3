"""Where a scheduler keeps tensors that outlive a step."""

from collections.abc import Iterator
from typing import Any

import torch


def model_runners(scheduler: Any) -> list[Any]:
    """The target's `ModelRunner`, and the draft's where there is one."""
    draft = draft_worker(scheduler)
    target = [scheduler.tp_worker.model_runner]
    if draft is None:
        return target
    return [*target, draft.model_runner if hasattr(draft, "model_runner") else draft.draft_runner]


def draft_worker(scheduler: Any) -> Any:
    """The worker that runs the draft model: v1's own, V2's inner one, None without speculation."""
    return getattr(scheduler.draft_worker, "draft_worker", scheduler.draft_worker)


def toggle(scheduler: Any) -> Any:
    """The `Schedule` of the toggle (harness/toggle/schedule.py), None where there is none."""
    return getattr(scheduler.draft_worker, "toggle", None)


def attention_backends(scheduler: Any) -> list[Any]:
    """Every attention backend: of the models, of draft extend, of all draft steps and of each, of plain steps."""
    draft, toggled = draft_worker(scheduler), toggle(scheduler)
    backends = [runner.attn_backend for runner in model_runners(scheduler)]
    for name in ("draft_attn_backend", "draft_extend_attn_backend"):
        backend = getattr(draft, name, None)
        if backend is not None:
            backends += [backend, *getattr(backend, "attn_backends", ())]
    if toggled is not None:
        backends += [toggled.target.backend, toggled.draft.backend]
    return backends


def persistent_buffers(scheduler: Any) -> list[torch.Tensor]:
    """Tensors that outlive a step: inputs and outputs of captured graphs, metadata of attention backends."""
    buffers = {}
    for owner in _owners(scheduler):
        for value in owner if isinstance(owner, tuple) else vars(owner).values():
            if isinstance(value, torch.Tensor):
                buffers[id(value)] = value
    return list(buffers.values())


def _owners(scheduler: Any) -> Iterator[Any]:
    draft, toggled = draft_worker(scheduler), toggle(scheduler)
    graph_runners = [
        *(runner.graph_runner for runner in model_runners(scheduler)),
        getattr(draft, "cuda_graph_runner", None),
        getattr(draft, "cuda_graph_runner_for_draft_extend", None),
        toggled and toggled.target.graphs,
    ]
    for runner in filter(None, graph_runners):
        yield from (runner, runner.buffers, *runner.output_buffers.values())
    if toggled is not None and toggled.draft.graphs is not None:
        yield tuple(toggled.draft.graphs.buffers)
    if toggled is not None and hasattr(toggled.draft, "kept"):
        yield toggled.draft.kept.tokens, toggled.draft.kept.hidden_states
    yield from attention_backends(scheduler)
