"""Each spec step accepts exactly what the model pair's closed form says."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from harness.configuration import EngineConfig, Worker
from harness.engine.engine import Engine
from harness.oracle import accepted
from harness.program import Drain, Program, Submit
from harness.prompts import Prompt

CONFIGS = {
    "v1-topk-4": EngineConfig(graphs=()),
    "v1-topk-1": EngineConfig(topk=1, graphs=()),
    "v1-topk-8-steps-7": EngineConfig(topk=8, steps=7, graphs=()),
    "V2": EngineConfig(worker=Worker.V2),
    "V2-steps-1-bfloat16": EngineConfig(worker=Worker.V2, steps=1, dtype="bfloat16"),
}


@pytest.mark.parametrize(
    "config",
    [pytest.param(config, id=name, marks=pytest.mark.xdist_group(name)) for name, config in CONFIGS.items()],
)
def test_accepted_lengths(boot: Callable[[EngineConfig], Engine], config: EngineConfig) -> None:
    prompts = [Prompt(period=period, seed=5, length=period + 3) for period in (5, 11, 24, 60)]
    submits = [Submit(count=2, prompt=prompt, max_new_tokens=48) for prompt in prompts]
    trace = boot(config).run(Program(config=config, operations=(*submits, Drain())))

    family = [replace(prompt, seed=prompt.seed + i) for prompt in prompts for i in range(2)]
    produced = [0] * len(family)
    compared = 0
    for step in trace.steps:
        for place, (number, count) in enumerate(zip(step.requests, step.tokens_out, strict=True)):
            ends = produced[number] + count >= 48  # how far a run reaches past the end is the worker's own business
            if step.accepted is not None and count and not ends:
                assert step.accepted[place] == accepted(family[number], produced[number], config.steps)
                assert count == step.accepted[place] + 1
                compared += 1
            produced[number] += count
    assert compared > 50
