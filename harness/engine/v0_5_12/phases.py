"""Name the phases of a step for torch's profiler: spans around the calls that they are."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import Any

from torch.profiler import record_function

from harness.engine.v0_5_12.buffers import model_runners, toggle
from harness.engine.v0_5_12.graph_watch import graph_runners


@contextmanager
def phases(scheduler: Any) -> Iterator[tuple[str, ...]]:
    """Their names, while each is recorded; a phase within a phase counts as itself alone."""
    calls = list(_calls(scheduler))
    with ExitStack() as undoing:
        for name, owner, method in calls:
            undoing.callback(_restore, owner, method, vars(owner).get(method))
            setattr(owner, method, _recorded(name, getattr(owner, method)))
        yield tuple(dict.fromkeys(name for name, *_ in calls))


def _calls(scheduler: Any) -> Iterator[tuple[str, Any, str]]:
    """Phase, object and the method of it that the phase is (managers/scheduler.py, model_executor/model_runner.py)."""
    yield "schedule", scheduler, "get_next_batch_to_run"
    yield "run batch", scheduler, "run_batch"
    target, *drafts = model_runners(scheduler)
    yield "target forward", target, "forward"
    yield "sample", target, "sample"
    for draft in drafts:
        yield "draft forward", draft, "forward"
    for model, runner in graph_runners(scheduler):
        if model != "target":
            yield "draft forward", runner, "replay"
    toggled = toggle(scheduler)
    if toggled is not None:
        yield "draft's part of the toggle", toggled.draft, "catch_up"
        yield "draft's part of the toggle", toggled.draft, "follow"
    yield "process results", scheduler, "process_batch_result"


def _restore(owner: Any, method: str, own: Callable[..., Any] | None) -> None:
    """Give the object back its own method of that name, such as a patch may have set, or its class's."""
    if own is None:
        delattr(owner, method)
    else:
        setattr(owner, method, own)


def _recorded(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(call)
    def recorded(*args: Any, **kwargs: Any) -> Any:
        with record_function(name):
            return call(*args, **kwargs)

    return recorded
