"""The checks on the fixed toggle and on engines without one: thousands of steps, no alarm."""

from collections.abc import Callable

import pytest

from harness.checks import FAMILIES, Checks
from harness.configuration import EngineConfig, Toggle, Worker
from harness.engine.device import Device
from harness.engine.engine import Engine
from tests.support.random_programs import random_program

TOGGLED = Toggle(threshold=5)
CONFIGS = {
    "v1": EngineConfig(toggle=TOGGLED),
    "v1-topk-1-page-16-no-graphs": EngineConfig(topk=1, page_size=16, graphs=(), toggle=TOGGLED),
    "v1-chunked": EngineConfig(chunked_prefill_size=16, toggle=TOGGLED),
    "V2": EngineConfig(worker=Worker.V2, toggle=TOGGLED),
    "V2-page-4-no-radix": EngineConfig(worker=Worker.V2, page_size=4, radix_cache=False, toggle=TOGGLED),
    "V2-chunked-no-graphs": EngineConfig(worker=Worker.V2, chunked_prefill_size=16, graphs=(), toggle=TOGGLED),
    "v1-plain": EngineConfig(toggle=Toggle(threshold=5, strategy="plain")),
    "V2-plain-page-4": EngineConfig(
        worker=Worker.V2, page_size=4, toggle=Toggle(threshold=5, strategy="plain", kept_tokens=5)
    ),
    "v1-always-spec": EngineConfig(),
    "V2-always-spec": EngineConfig(worker=Worker.V2),
    "none-overlap": EngineConfig(worker=Worker.NONE, overlap=True),
    "none": EngineConfig(worker=Worker.NONE, page_size=4),
}
STEPS = {Device.CPU: 150, Device.CUDA: 1000}
LONG = 5000 // sum(config.toggle is not None for config in CONFIGS.values()) + 1
"""Steps of each configuration, with which the toggled ones make 5,000 together."""


def named(marks: Callable[[str], list[pytest.MarkDecorator]]) -> list[object]:
    return [pytest.param(config, id=name, marks=marks(name)) for name, config in CONFIGS.items()]


def run_checked(engine: Engine, steps: int, first_seed: int = 0) -> Checks | None:
    done, seed, checks = 0, first_seed, None
    while done < steps:
        program = random_program(engine.config, seed)
        checks = Checks(program)
        try:
            done += len(engine.run(program, checks=checks).steps)
        except Exception as error:
            raise AssertionError(f"random program {seed}") from error
        seed += 1
    return checks


@pytest.mark.parametrize("config", named(lambda name: [pytest.mark.xdist_group(f"checked-{name}")]))
def test_no_alarm(boot: Callable[[EngineConfig], Engine], config: EngineConfig, device: Device) -> None:
    checks = run_checked(boot(config), STEPS[device], first_seed=100)
    assert checks is not None
    assert set(checks.evaluated) == {family.name for family in FAMILIES}


@pytest.mark.slow
@pytest.mark.parametrize("config", named(lambda name: [pytest.mark.xdist_group(f"checked-{name}")]))
def test_no_alarm_for_long(boot: Callable[[EngineConfig], Engine], config: EngineConfig) -> None:
    run_checked(boot(config), LONG, first_seed=1000)
