"""Every worker answers right: each token of each request, in closed form."""

from collections.abc import Callable

import pytest

from harness.configuration import EngineConfig
from harness.engine.engine import Engine
from harness.oracle import judge
from harness.program import Program
from harness.trace import Trace
from tests.support.answers import right_answers
from tests.support.grid import GRID
from tests.support.random_programs import random_program

RANDOM_PROGRAMS = 20
CONFIGS = [pytest.param(config, id=name, marks=pytest.mark.xdist_group(name)) for name, config in GRID.items()]


def run_right(engine: Engine, program: Program) -> Trace:
    trace = engine.run(program)
    assert judge(trace, right_answers(program)) == []
    return trace


@pytest.mark.parametrize("config", CONFIGS)
def test_batch_sizes_1_10_3(boot: Callable[[EngineConfig], Engine], config: EngineConfig) -> None:
    program = Program.from_batch_sizes(config, [1, 10, 3])
    trace = run_right(boot(config), program)

    held = trace.decode_sizes
    assert held[:4] == [1] * 4
    assert held[4:9] == [10] * 5  # the aborted take one more step
    assert held[9:13] == [3] * 4
    assert {step.graph for step in trace.decode_steps()} == {bool(config.graphs)}
    assert all(step.spec == config.speculative for step in trace.decode_steps())
    assert trace.steps[-1].kv_free >= config.kv_tokens - config.page_size


@pytest.mark.parametrize("seed", range(RANDOM_PROGRAMS))
@pytest.mark.parametrize("config", CONFIGS)
def test_random_program(boot: Callable[[EngineConfig], Engine], config: EngineConfig, seed: int) -> None:
    run_right(boot(config), random_program(config, seed))
