"""The other attention backend, the only one that SGLang lets have topk > 1 with pages.

On the emulated device Triton's stands in for it.
"""

from collections.abc import Callable

import pytest

from harness.configuration import EngineConfig, Worker
from harness.engine.engine import Engine
from harness.oracle import judge
from harness.program import Program
from tests.support.answers import right_answers
from tests.support.random_programs import random_program

FLASHINFER = {"attention_backend": "flashinfer", "dtype": "bfloat16", "graphs": (1, 2, 4, 8, 16)}
CONFIGS = {
    "V2": EngineConfig(worker=Worker.V2, **FLASHINFER),
    "v1-topk-4": EngineConfig(**FLASHINFER),
    "v1-topk-4-page-4": EngineConfig(page_size=4, **FLASHINFER),
    "v1-topk-2-page-16": EngineConfig(topk=2, page_size=16, **FLASHINFER),
}


@pytest.mark.parametrize(
    "config",
    [pytest.param(config, id=name, marks=pytest.mark.xdist_group(f"fi-{name}")) for name, config in CONFIGS.items()],
)
def test_answers(boot: Callable[[EngineConfig], Engine], config: EngineConfig) -> None:
    engine = boot(config)
    programs = [Program.from_batch_sizes(config, [1, 10, 3]), *(random_program(config, seed) for seed in range(3))]
    for program in programs:
        assert judge(engine.run(program), right_answers(program)) == []
