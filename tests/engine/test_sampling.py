"""Sampling at temperature > 0: verification goes through the sampling kernel and keeps the distribution's shape."""

from collections.abc import Callable

import pytest

from harness.configuration import EngineConfig, Worker
from harness.engine.engine import Engine
from harness.oracle import judge
from harness.program import Drain, Program, Submit
from harness.prompts import Prompt
from harness.trace import Trace
from tests.support.answers import right_answers

CONFIGS = [
    pytest.param(EngineConfig(), id="v1", marks=pytest.mark.xdist_group("v1-graphs-float32")),
    pytest.param(EngineConfig(worker=Worker.V2), id="V2", marks=pytest.mark.xdist_group("V2-graphs-float32")),
]


def run(engine: Engine, temperature: float) -> tuple[Program, Trace]:
    submit = Submit(count=4, prompt=Prompt(period=12, seed=2, length=16), max_new_tokens=24, temperature=temperature)
    program = Program(config=engine.config, operations=(submit, Drain()))
    return program, engine.run(program)


@pytest.mark.parametrize("config", CONFIGS)
def test_a_sharp_distribution_gives_the_greedy_answer(
    boot: Callable[[EngineConfig], Engine], config: EngineConfig
) -> None:
    """At temperature 0.5 the right token has all but e-12 of the probability: acceptance and residual must agree."""
    program, trace = run(boot(config), temperature=0.5)
    greedy = [submit.model_copy(update={"temperature": 0.0}) for submit in program.submits]
    assert judge(trace, right_answers(Program(config=config, operations=tuple(greedy)))) == []
    assert sum(sum(step.accepted or ()) for step in trace.steps) > 10


@pytest.mark.parametrize("config", CONFIGS)
def test_a_flat_distribution_gives_anything(boot: Callable[[EngineConfig], Engine], config: EngineConfig) -> None:
    _, trace = run(boot(config), temperature=50.0)
    outputs = [request.output for request in trace.requests]
    assert all(len(output) == 24 for output in outputs)
    assert len({token for output in outputs for token in output}) > 40
    assert all(0 <= token < 256 for output in outputs for token in output)
