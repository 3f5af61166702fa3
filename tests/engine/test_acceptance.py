"""Each spec step accepts exactly what the model pair's closed form says."""

from collections.abc import Callable

import pytest

from harness.configuration import EngineConfig, Worker
from harness.engine.engine import Engine
from harness.program import Drain, Program, Submit
from harness.prompts import Prompt
from tests.support.acceptance import compare_acceptance

# Without graphs: with them SGLang accepts less (cases/upstream/v1-draft-extend-graph, v2-draft-extend-graph).
CONFIGS = {
    "v1-topk-4": EngineConfig(graphs=()),
    "v1-topk-1": EngineConfig(topk=1, graphs=()),
    "v1-topk-8-steps-7": EngineConfig(topk=8, steps=7, graphs=()),
    "V2-steps-7": EngineConfig(worker=Worker.V2, steps=7, graphs=()),
    "V2-steps-1-bfloat16": EngineConfig(worker=Worker.V2, steps=1, dtype="bfloat16", graphs=()),
}


@pytest.mark.parametrize(
    "config",
    [pytest.param(config, id=name, marks=pytest.mark.xdist_group(name)) for name, config in CONFIGS.items()],
)
def test_accepted_lengths(boot: Callable[[EngineConfig], Engine], config: EngineConfig) -> None:
    prompts = [Prompt(period=period, seed=5, length=period + 3) for period in (5, 11, 24, 60)]
    submits = [Submit(count=2, prompt=prompt, max_new_tokens=48) for prompt in prompts]
    program = Program(config=config, operations=(*submits, Drain()))

    compared = compare_acceptance(program, boot(config).run(program))

    assert [case for case in compared if case.seen != case.expected] == []
    assert len(compared) > 50
