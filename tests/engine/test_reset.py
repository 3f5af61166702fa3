"""A reset leaves nothing behind, notices what isn't as after boot, and a run doesn't depend on what ran before."""

from collections.abc import Callable

import pytest
import torch

from harness.configuration import EngineConfig, Worker
from harness.engine.engine import Engine
from harness.engine.errors import ResetError
from harness.program import Program, Retract, Step, Submit
from harness.prompts import Prompt
from tests.support.random_programs import random_program
from tests.support.reachable import reachable_tensors

V1 = EngineConfig()
V2 = EngineConfig(worker=Worker.V2)
Boot = Callable[[EngineConfig], Engine]
BOTH = pytest.mark.parametrize(
    "config",
    [
        pytest.param(V1, id="v1", marks=pytest.mark.xdist_group("v1-graphs-float32")),
        pytest.param(V2, id="V2", marks=pytest.mark.xdist_group("V2-graphs-float32")),
    ],
)


@BOTH
def test_reset_in_the_middle_of_everything(boot: Boot, config: EngineConfig) -> None:
    """Requests waiting, in a half-done step, retracted and in flight are all gone."""
    engine = boot(config)
    busy = Submit(count=16, prompt=Prompt(period=20, seed=0, length=30), max_new_tokens=90)
    engine.run(Program(config=config, operations=(busy, Step(count=3), Retract(), busy, Step(count=2), Retract())))
    assert engine.trace.steps[-1].kv_free < config.kv_tokens
    engine.reset()


@BOTH
def test_a_run_is_the_same_whatever_ran_before(boot: Boot, config: EngineConfig) -> None:
    engine = boot(config)
    program = random_program(config, seed=101)
    first = engine.run(program).to_json()
    engine.run(Program(config=config, operations=(Submit(count=12, max_new_tokens=50), Step(count=9))))
    assert engine.run(program).to_json() == first


@BOTH
def test_no_tensor_remembers_a_program(boot: Boot, config: EngineConfig) -> None:
    """Inputs and outputs of captured graphs, attention metadata, pools, futures: all as after boot."""
    engine = boot(config)
    engine.reset()
    scheduler = engine._session.scheduler
    before = {path: tensor.clone() for path, tensor in reachable_tensors(scheduler).items()}
    engine.run(random_program(config, seed=3))
    engine.reset()
    after = reachable_tensors(scheduler)
    changed = [path for path in before.keys() & after.keys() if not _same(before[path], after[path])]
    assert changed == []
    assert len(before) > 100


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.shape == other.shape and torch.equal(one.nan_to_num(), other.nan_to_num())


@pytest.mark.xdist_group("v1-graphs-float32")
def test_one_engine_at_a_time(boot: Boot) -> None:
    engine = boot(V1)
    with pytest.raises(RuntimeError, match="another engine is open in this process: close it first"):
        Engine(V2, engine.device)
    assert len(engine.run(Program(config=V1, operations=(Submit(), Step(count=9)))).steps) == 9


def test_a_closed_engine_says_so(boot: Boot) -> None:
    """And has ended its sockets itself: left to the garbage collector they may be waited for, for ever."""
    engine = boot(EngineConfig(worker=Worker.NONE, graphs=()))
    sockets = engine._session.scheduler.recv_from_tokenizer.context
    engine.close()
    assert sockets.closed
    engine.close()
    with pytest.raises(RuntimeError, match="this engine is closed"):
        engine.reset()


@pytest.mark.xdist_group("v1-graphs-float32")
def test_sampling_is_the_same_after_a_reset(boot: Boot) -> None:
    engine = boot(V1)
    program = Program(config=V1, operations=(Submit(count=2, temperature=3.0, max_new_tokens=12), Step(count=14)))
    outputs = [[request.output for request in engine.run(program).requests] for _ in range(2)]
    assert outputs[0] == outputs[1]


@pytest.mark.xdist_group("v1-graphs-float32")
def test_a_leak_that_a_reset_can_not_mend_is_noticed(boot: Boot) -> None:
    engine = boot(V1)
    pool = engine._session.scheduler.req_to_token_pool
    clear = pool.clear
    pool.clear = lambda: (clear(), pool.free_slots.pop())
    try:
        with pytest.raises(ResetError, match="free request rows"):
            engine.reset()
    finally:
        del pool.clear
        engine.reset()
