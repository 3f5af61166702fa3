"""Thousands of steps across the threshold: nothing is captured after start, nothing is left behind."""

import gc
import importlib
from collections.abc import Callable
from typing import Any

import pytest
import torch

from harness.configuration import EngineConfig, Toggle
from harness.engine.device import Device
from harness.engine.engine import Engine
from harness.oracle import judge
from harness.program import Drain, Flush, Operation, Program, Step, Submit
from harness.prompts import Prompt
from tests.support.answers import right_answers

STEPS = {Device.CPU: 300, Device.CUDA: 2000}
GRAPH_RUNNERS = (
    ("sglang.srt.model_executor.cuda_graph_runner", "CudaGraphRunner"),
    ("sglang.srt.speculative.eagle_draft_cuda_graph_runner", "EAGLEDraftCudaGraphRunner"),
    ("sglang.srt.speculative.eagle_draft_extend_cuda_graph_runner", "EAGLEDraftExtendCudaGraphRunner"),
)
CONFIGS = [
    pytest.param(
        EngineConfig(worker=worker, toggle=Toggle(threshold=3, strategy=strategy)),
        id=f"{worker}-{strategy}",
        marks=pytest.mark.xdist_group(f"threshold-3-{worker}" + ("" if strategy == "warm" else "-plain")),
    )
    for strategy in ("warm", "plain")
    for worker in ("v1", "v2")
]


def wave(seed: int) -> tuple[Operation, ...]:
    """Some 30 steps that cross the threshold both ways and end with empty caches."""
    few = Submit(count=2, prompt=Prompt(period=9, seed=seed, length=12), max_new_tokens=50)
    many = Submit(count=7, prompt=Prompt(period=14, seed=seed, length=17), max_new_tokens=9)
    return few, Step(count=4), many, Drain(), Flush(), Step()


def held(device: Device) -> int:
    """How much is allocated: blocks of 512 bytes, the smallest there are, on a GPU; tensors on the emulated device."""
    gc.collect()
    if device is Device.CUDA:
        torch.cuda.synchronize()
        return torch.cuda.memory_allocated() // 512
    return sum(type(thing) is torch.Tensor for thing in gc.get_objects())


@pytest.mark.parametrize("config", CONFIGS)
def test_nothing_is_captured_or_left_behind(
    boot: Callable[[EngineConfig], Engine], config: EngineConfig, device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = boot(config)

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a graph is captured after start")

    for module, runner in GRAPH_RUNNERS:
        monkeypatch.setattr(getattr(importlib.import_module(module), runner), "_capture_graph", refuse)
    steps, switches, after = 0, 0, []
    while steps < STEPS[device]:
        program = Program(config=config, operations=wave(seed=len(after)))
        trace = engine.run(program)
        assert judge(trace, right_answers(program)) == []
        steps += len(trace.steps)
        switches += sum(trace.switches)
        after.append(held(device))
    assert switches >= 2 * len(after)
    grown = after[-1] - after[2]  # the first waves may fill caches of the libraries
    assert grown < len(after) - 3, f"{after}: something is left behind by each wave"
