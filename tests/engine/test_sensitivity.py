"""In the real engine, one damaged KV entry that is still read changes tokens, and a damaged draft cache acceptance."""

from collections.abc import Callable

import pytest
import torch

from harness.configuration import EngineConfig, Worker
from harness.engine.engine import Engine
from harness.engine.v0_5_12.buffers import model_runners
from harness.oracle import judge
from harness.program import Drain, Program, Step, Submit
from harness.prompts import Prompt
from tests.support.acceptance import compare_acceptance
from tests.support.answers import right_answers

CONFIGS = [
    pytest.param(EngineConfig(), id="v1", marks=pytest.mark.xdist_group("v1-graphs-float32")),
    pytest.param(EngineConfig(worker=Worker.V2), id="V2", marks=pytest.mark.xdist_group("V2-graphs-float32")),
]
Boot = Callable[[EngineConfig], Engine]
PERIOD = 40
SUBMIT = Submit(prompt=Prompt(period=PERIOD, seed=4, length=PERIOD + 2), max_new_tokens=36)
TARGET, DRAFT = 0, 1


def zero(engine: Engine, model: int, slots: torch.Tensor) -> None:
    pool = model_runners(engine._session.scheduler)[model].token_to_kv_pool
    for buffer in (*pool.k_buffer, *pool.v_buffer):
        buffer[slots] = 0


def prefill(engine: Engine) -> torch.Tensor:
    """Prefill one request and return the slots of its prompt."""
    engine.reset()
    engine.watch()
    engine.execute(SUBMIT)
    engine.execute(Step())
    scheduler = engine._session.scheduler
    row = scheduler.last_batch.reqs[0].req_pool_idx
    return scheduler.req_to_token_pool.req_to_token[row, : PERIOD + 2].long()


def finish(engine: Engine) -> Program:
    """Run to the end and return what was run, as a program."""
    engine.execute(Drain())
    return Program(config=engine.config, operations=(SUBMIT, Step(), Drain()))


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("place", [5, 20, 35])
def test_one_zeroed_slot_of_the_target_changes_tokens(boot: Boot, config: EngineConfig, place: int) -> None:
    engine = boot(config)
    slots = prefill(engine)
    zero(engine, TARGET, slots[place])
    assert len(judge(engine.trace, right_answers(finish(engine)))) == 1


@pytest.mark.parametrize("config", CONFIGS)
def test_a_zeroed_draft_cache_costs_acceptance_but_no_token(boot: Boot, config: EngineConfig) -> None:
    engine = boot(config)
    slots = prefill(engine)
    zero(engine, DRAFT, slots)
    program = finish(engine)
    assert judge(engine.trace, right_answers(program)) == []
    compared = compare_acceptance(program, engine.trace)
    assert sum(row.seen for row in compared) < sum(row.expected for row in compared) / 2


@pytest.mark.parametrize("config", CONFIGS)
def test_undamaged_it_is_right(boot: Boot, config: EngineConfig) -> None:
    engine = boot(config)
    prefill(engine)
    program = finish(engine)
    assert judge(engine.trace, right_answers(program)) == []
    assert all(row.seen == row.expected for row in compare_acceptance(program, engine.trace))
