"""A reset leaves nothing behind, notices what isn't as after boot, and a run doesn't depend on what ran before."""

from collections.abc import Callable

import pytest

from harness.configuration import EngineConfig, Worker
from harness.engine.engine import Engine
from harness.engine.errors import ResetError
from harness.program import Program, Retract, Step, Submit
from harness.prompts import Prompt
from tests.support.random_programs import random_program

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
