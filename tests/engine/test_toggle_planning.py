"""Where the host plans a plain step's attention, it has planned all of it before the target's forward.

A plan is copied to the device from memory that the next plan overwrites: V2's host, which doesn't wait for the forward,
must find the copy done when it is at the next step. On the emulated device, whose attention plans itself, the host is
made to.
"""

import importlib
from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from harness.configuration import EngineConfig, Toggle
from harness.engine.device import Device
from harness.engine.engine import Engine
from harness.oracle import judge
from harness.program import Program
from tests.support.answers import right_answers
from tests.support.engines import Engines

CONFIGS = [
    pytest.param(
        EngineConfig(worker=worker, max_running_requests=20, toggle=Toggle(threshold=3)),
        id=worker,
        marks=pytest.mark.xdist_group(f"planning-{worker}"),
    )
    for worker in ("v1", "v2")
]
PLANNED = ("plan target", "plan draft")
REPLAYED = ("replay target", "replay draft")


@pytest.fixture
def planning_host(boot: Engines, device: Device, monkeypatch: pytest.MonkeyPatch) -> Callable[[EngineConfig], Engine]:
    """Boots engines whose plain graphs don't plan."""
    boot.close()  # the toggle's modules import SGLang, for which a boot makes the device ready
    Engine(EngineConfig(graphs=()), device).close()
    for module in ("plain_target", "plain_draft"):
        monkeypatch.setattr(importlib.import_module(f"harness.toggle.{module}"), "plans_in_graph", lambda _: False)
    return lambda config: Engine(config, device)


def watched(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What plain steps plan, replay and record from here on."""
    engine.reset()
    seen: list[str] = []

    def note(owner: Any, method: str, name: str) -> None:
        original = getattr(owner, method)

        def noting(*args: Any, **kwargs: Any) -> Any:
            seen.append(name)
            return original(*args, **kwargs)

        monkeypatch.setattr(owner, method, noting)

    worker = engine._session.scheduler.draft_worker
    target, draft = worker.toggle.target, worker.toggle.draft
    note(worker, "_plain_step", "step")
    for name, backend in (("target", target.backend), ("draft", draft.backend)):
        note(backend, "init_forward_metadata_replay_cuda_graph", f"plan {name}")
    for name, graphs in (
        ("target", target.graphs.graphs.values()),
        ("draft", [graph for graph, _ in draft.graphs._graphs.values()]),
    ):
        for graph in graphs:
            note(graph, "replay", f"replay {name}")
    if hasattr(worker, "_streams"):
        streams = worker._streams

        def event() -> Any:
            made = streams.Event()
            note(made, "record", "record")
            return made

        monkeypatch.setattr(worker, "_streams", SimpleNamespace(Event=event, current_stream=streams.current_stream))
    return seen


def steps(seen: list[str]) -> Counter[tuple[str, ...]]:
    """How often plain steps did what, in which order."""
    text = " | ".join(seen).split("step")[1:]
    return Counter(tuple(filter(None, (done.strip() for done in step.split("|")))) for step in text)


@pytest.mark.parametrize("config", CONFIGS)
def test_the_draft_is_planned_before_the_target_is_replayed(
    planning_host: Callable[[EngineConfig], Engine], config: EngineConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At captured sizes, padded to one, and beyond the last, eagerly; V2 says so to the scheduler in between."""
    program = Program.from_batch_sizes(config, [3, 4, 6, 17, 16, 2])
    with planning_host(config) as engine:
        seen = watched(engine, monkeypatch)
        assert judge(engine.run(program), right_answers(program)) == []
    known = ("record",) if config.worker == "v2" else ()
    counted = steps(seen)
    assert set(counted) == {(*known, *PLANNED, *known, *REPLAYED), known}
    assert counted[known] < counted.total() / 2
