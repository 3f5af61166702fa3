"""The toggle answers right, whatever crosses its threshold, and speculates exactly where its policy says."""

from collections.abc import Callable
from itertools import pairwise

import pytest

from harness.configuration import EngineConfig, Toggle
from harness.engine.device import Device
from harness.engine.engine import Engine
from harness.oracle import judge
from harness.program import Drain, Program, Step, Submit
from harness.prompts import Prompt
from harness.trace import Trace
from tests.support.acceptance import compare_acceptance
from tests.support.answers import right_answers
from tests.support.grid import PLAIN, PLAIN_SAMPLE, TOGGLED
from tests.support.random_programs import random_program

Boot = Callable[[EngineConfig], Engine]
BOTH_STRATEGIES = TOGGLED | PLAIN
SEQUENCES = {
    "1,10,3": [1, 10, 3],
    "10,1,10": [10, 1, 10],
    "1,0,1": [1, 0, 1],
    "5,6,5,6,5": [5, 6, 5, 6, 5],
    "16,17,16,3": [16, 17, 16, 3],
}
RANDOM_PROGRAMS = {Device.CPU: 6, Device.CUDA: 50}


def configs(names: dict[str, EngineConfig]) -> list[object]:
    """Those of bfloat16 are for a GPU, where both have their own kernels."""
    return [
        pytest.param(config, id=name, marks=[pytest.mark.xdist_group(f"toggled-{name}"), *marks(name, config)])
        for name, config in names.items()
    ]


def marks(name: str, config: EngineConfig) -> list[pytest.MarkDecorator]:
    if config.dtype != "float32":
        return [pytest.mark.gpu]
    return [pytest.mark.slow] if name in PLAIN and name not in PLAIN_SAMPLE else []


def run_right(engine: Engine, program: Program) -> Trace:
    trace = engine.run(program)
    assert judge(trace, right_answers(program)) == []
    toggle = engine.config.toggle
    assert toggle is not None
    assert all(step.spec == (step.batch_size <= toggle.threshold) for step in trace.decode_steps())
    assert all(step.plain != step.spec for step in trace.decode_steps())
    return trace


@pytest.mark.parametrize("sizes", SEQUENCES.values(), ids=SEQUENCES.keys())
@pytest.mark.parametrize("config", configs(BOTH_STRATEGIES))
def test_batch_sizes(boot: Boot, config: EngineConfig, sizes: list[int]) -> None:
    trace = run_right(boot(config), Program.from_batch_sizes(config, sizes))
    assert set(sizes) - {0} <= set(trace.decode_sizes)
    replayed = {step.batch_size for step in trace.decode_steps() if step.graph}
    assert replayed == {size for size in trace.decode_sizes if config.graphs and size <= config.graphs[-1]}
    assert (True in {step.plain for step in trace.decode_steps()}) == (max(sizes) > 5)
    assert True in {step.spec for step in trace.decode_steps()}


@pytest.mark.parametrize("config", configs(BOTH_STRATEGIES))
def test_random_programs(boot: Boot, config: EngineConfig, device: Device) -> None:
    engine, crossed = boot(config), 0
    for seed in range(RANDOM_PROGRAMS[device]):
        try:
            crossed += any(run_right(engine, random_program(config, seed)).switches)
        except Exception as error:
            raise AssertionError(f"random program {seed}") from error
    assert crossed > RANDOM_PROGRAMS[device] / 2


@pytest.mark.parametrize("config", configs({name: c for name, c in BOTH_STRATEGIES.items() if not c.graphs}))
def test_every_spec_step_accepts_what_the_closed_form_says(boot: Boot, config: EngineConfig) -> None:
    """Without graphs: with them SGLang's own spec steps accept less (cases/upstream)."""
    program = crossing(config)
    compared = compare_acceptance(program, run_right(boot(config), program))
    assert [case for case in compared if case.seen != case.expected] == []
    assert len(compared) > 40


@pytest.mark.parametrize("config", configs({name: c for name, c in BOTH_STRATEGIES.items() if c.graphs}))
def test_the_first_spec_step_after_a_plain_stretch_accepts_all(boot: Boot, config: EngineConfig) -> None:
    """What a plain step leaves behind is exact with graphs too: only later spec steps build on SGLang's own extend."""
    program = crossing(config)
    trace = run_right(boot(config), program)
    firsts = {after.index for before, after in pairwise(trace.decode_steps()) if before.plain and after.spec}
    compared = [case for case in compare_acceptance(program, trace) if case.step in firsts]
    assert [case for case in compared if case.seen != case.expected] == []
    assert len(firsts) >= 2
    assert sum(case.seen for case in compared) > 0


def crossing(config: EngineConfig) -> Program:
    """Some requests run long; others join twice for a while and push the batch over the threshold."""
    long = [
        Submit(count=2, prompt=Prompt(period=period, seed=7, length=period + 3), max_new_tokens=70)
        for period in (9, 30)
    ]
    short = Submit(count=6, prompt=Prompt(period=12, seed=40, length=15), max_new_tokens=9)
    return Program(config=config, operations=(*long, Step(count=6), short, Step(count=14), short, Drain()))


def both_workers(group: str, **settings: object) -> list[object]:
    return [
        pytest.param(EngineConfig(worker=worker, **settings), id=worker, marks=pytest.mark.xdist_group(group + worker))
        for worker in ("v1", "v2")
    ]


@pytest.mark.parametrize("config", both_workers("last-size", max_running_requests=20, toggle=Toggle(threshold=16)))
def test_a_threshold_at_the_largest_captured_size(boot: Boot, config: EngineConfig) -> None:
    """16,17,16: a spec step replays the largest graph, a plain step of one more request is eager."""
    trace = boot(config).run(program := Program.from_batch_sizes(config, [16, 17, 16]))
    assert judge(trace, right_answers(program)) == []
    ran = {(step.batch_size, "spec" if step.spec else "plain", step.graph) for step in trace.decode_steps()}
    assert {(16, "spec", True), (17, "plain", False)} <= ran
    assert trace.switches == (1, 1)


@pytest.mark.parametrize("config", both_workers("hysteresis", toggle=Toggle(threshold=5, hysteresis=2)))
def test_hysteresis(boot: Boot, config: EngineConfig) -> None:
    """5,6,5,6,3,5: off at 6, and on again at 3 only; the next run starts speculating whatever this one left."""
    engine = boot(config)
    program = Program.from_batch_sizes(config, [5, 6, 5, 6, 3, 5])
    for _ in range(2):
        trace = engine.run(program)
        assert judge(trace, right_answers(program)) == []
        assert trace.switches == (1, 1)
        assert next(step.spec for step in trace.decode_steps() if step.batch_size == 5)
