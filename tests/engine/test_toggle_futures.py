"""What a step of a toggled V2 finds is what SGLang's own `FutureMap`, storing everything, would have handed it."""

import importlib
from collections import Counter
from collections.abc import Callable
from copy import copy
from typing import Any

import pytest
import torch

from harness.configuration import EngineConfig, Toggle
from harness.engine.device import Device
from harness.engine.engine import Engine
from harness.oracle import judge
from harness.program import Program, Retract, Step, Submit
from tests.support.answers import right_answers
from tests.support.random_programs import random_program

FIELDS = ("topk_p", "topk_index", "hidden_states", "bonus_tokens", "new_seq_lens")
CONFIGS = [
    pytest.param(EngineConfig(worker="v2", toggle=Toggle(threshold=3), **more), id=name)
    for name, more in {"graphs": {}, "no-graphs": {"graphs": ()}}.items()
]
PLAIN = pytest.param(
    EngineConfig(worker="v2", toggle=Toggle(threshold=3, strategy="plain", kept_tokens=4)), id="graphs-plain"
)


class Shadow:
    """Shows each result and each look-up to the parent's methods on a map of their own, and compares."""

    def __init__(self, scheduler: Any) -> None:
        self.seen: Counter[str] = Counter()
        self._map = scheduler.future_map
        self._parent = type(self._map).__mro__[1]
        self._full = copy(self._map)  # makes its buffers with its own first result
        self._full.buf_initialized = False
        self._store, self._resolve = self._map.store_to_map, self._map.resolve_future

    def __enter__(self) -> "Shadow":
        self._map.store_to_map, self._map.resolve_future = self._storing, self._resolving
        return self

    def __exit__(self, *_: object) -> None:
        del self._map.store_to_map, self._map.resolve_future

    def _storing(self, future_indices: Any, batch_result: Any) -> None:
        self._parent.store_to_map(self._full, future_indices, batch_result)
        self._store(future_indices, batch_result)

    def _resolving(self, batch: Any) -> None:
        if batch.spec_info is None:
            self._resolve(batch)
            return
        full = copy(batch)
        full.spec_info = copy(batch.spec_info)
        self._parent.resolve_future(self._full, full)
        before = batch.spec_info.bonus_tokens
        self._resolve(batch)
        self.seen["left where it was" if batch.spec_info.bonus_tokens is before else "gathered"] += 1
        for name in FIELDS:
            assert torch.equal(getattr(batch.spec_info, name), getattr(full.spec_info, name)), name


@pytest.mark.parametrize("config", [*CONFIGS, PLAIN])
def test_every_step_finds_what_was_left(
    boot: Callable[[EngineConfig], Engine], config: EngineConfig, device: Device
) -> None:
    engine = boot(config)
    programs = [Program.from_batch_sizes(config, [1, 6, 5, 2, 4], steps_each=5)]
    programs += [random_program(config, seed) for seed in range({Device.CPU: 8, Device.CUDA: 50}[device])]
    with Shadow(engine._session.scheduler) as shadow:
        for program in programs:
            assert judge(engine.run(program), right_answers(program)) == []
    assert min(shadow.seen["left where it was"], shadow.seen["gathered"]) > 20


@pytest.mark.parametrize("config", CONFIGS)
def test_slots_are_allocated_as_the_parent_does(
    boot: Callable[[EngineConfig], Engine], config: EngineConfig, device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = boot(config)
    stopped = Program(
        config=config, operations=(Submit(count=7, max_new_tokens=40), Step(count=9), Retract(), Step(count=5))
    )
    programs = [stopped, *(random_program(config, seed) for seed in range({Device.CPU: 5, Device.CUDA: 50}[device]))]

    def run(program: Program) -> tuple[str, torch.Tensor]:
        trace = engine.run(program).to_json()
        return trace, engine._session.scheduler.req_to_token_pool.req_to_token.clone()

    own = [run(program) for program in programs]
    plain_input = importlib.import_module("harness.toggle.plain_input")  # imports SGLang, for which the device is ready
    monkeypatch.delattr(plain_input.PlainDraftInput, "prepare_for_decode")
    for (trace, table), program in zip(own, programs, strict=True):
        parents = run(program)
        assert trace == parents[0]
        assert torch.equal(table, parents[1])
