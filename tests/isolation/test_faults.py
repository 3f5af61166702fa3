"""What takes a process along leaves the parent, the exact last step, and an engine for the next program."""

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from harness.configuration import EngineConfig, Toggle
from harness.engine.device import Device
from harness.isolation import machine
from harness.isolation.child import Limits
from harness.isolation.engines import Engines
from harness.isolation.messages import Run
from harness.isolation.nursery import Nursery
from harness.program import Drain, Program, Step, Submit

pytestmark = pytest.mark.xdist_group("children")  # one process imports SGLang for all of them
DEADLY = Path(__file__).parents[1] / "support/deadly"
SOUND = EngineConfig(toggle=Toggle(threshold=1), graphs=(), max_running_requests=4)
LONG = Submit(max_new_tokens=24)
OPERATIONS = (LONG, Step(count=3), LONG, Step(count=5), Drain())
FATAL_STEP = 4
"""Prefill, two spec steps, prefill, then the first plain step."""
UNTIL = (LONG, Step(count=3), LONG, Step(count=2))
MEMORY_BYTES = {Device.CPU: 2 << 30, Device.CUDA: 5 << 30}
"""An engine's process has 1.1 GB on the emulated device, 2 GB where CUDA is loaded."""


@pytest.fixture
def engines(device: Device, request: pytest.FixtureRequest) -> Iterator[Engines]:
    # Only what is to hang is given up soon: on a busy machine the others may take a while.
    patience = {"hang_seconds": 5.0} if "hang" in request.node.name else {}
    limits = Limits(memory_bytes=MEMORY_BYTES[device], **patience)
    with Nursery(device, limits=limits) as nursery, Engines(nursery, most=2) as engines:
        yield engines


def patched(name: str) -> Program:
    config = SOUND.model_copy(update={"patch": str(DEADLY / f"{name}.py")})
    return Program(config=config, operations=OPERATIONS)


@pytest.mark.parametrize(
    ("name", "kind", "text", "message"),
    [
        ("killed", "dies", "killed by SIGKILL", ""),
        ("hanging", "hangs", "a step didn't return within 5 s", "wait_for_the_result_that_never_comes"),
        ("greedy", "dies", "out of memory: killed at", ""),
    ],
)
def test_nothing_is_lost(engines: Engines, name: str, kind: str, text: str, message: str) -> None:
    ran = engines.run(Run(patched(name)))
    assert (ran.outcome.kind, ran.outcome.step) == (kind, FATAL_STEP)
    assert text in (ran.outcome.text or "")
    assert message in ran.message
    assert ran.until.operations == UNTIL
    again = engines.run(Run(ran.until))
    assert (again.outcome.kind, again.outcome.step) == (kind, FATAL_STEP)
    sound = Program(config=SOUND, operations=OPERATIONS)
    assert engines.run(Run(sound)).outcome.kind == "passes"


def test_who_waits_for_a_compiler_doesnt_hang(engines: Engines, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [False, True, True]
    monkeypatch.setattr(machine, "compiling", answers.pop)
    ran = engines.run(Run(patched("hanging")))
    assert (ran.outcome.kind, ran.outcome.step) == ("hangs", FATAL_STEP)
    assert "within 5 s" in (ran.outcome.text or "")
    assert not answers  # given up only with the third


def test_an_exception_costs_no_process(engines: Engines) -> None:
    program = patched("out_of_range")
    if engines.nursery.device is Device.CUDA:
        pytest.skip("on a GPU the process can't go on: see test_a_device_side_fault")
    outcomes = [engines.run(Run(program)).outcome for _ in range(2)]
    assert {(outcome.kind, outcome.step) for outcome in outcomes} == {("raises", FATAL_STEP)}
    assert "IndexError" in (outcomes[0].text or "")
    assert engines.processes_started == 1


@pytest.mark.gpu
def test_a_device_side_fault(engines: Engines) -> None:
    ran = engines.run(Run(patched("out_of_range")))
    assert (ran.outcome.kind, ran.outcome.step) == ("raises", FATAL_STEP)
    assert "device-side assert" in (ran.outcome.text or "")
    assert ran.until.operations == UNTIL
    awaited = engines.nursery.run(Run(ran.until), environment={"CUDA_LAUNCH_BLOCKING": "1"})
    assert (awaited.outcome.kind, awaited.outcome.step) == ("raises", FATAL_STEP)
    assert engines.run(Run(Program(config=SOUND, operations=OPERATIONS))).outcome.kind == "passes"


def test_a_fault_that_shows_after_the_program(engines: Engines) -> None:
    program = patched("faulty")
    for started in (1, 2):  # what has met it serves no other program
        ran = engines.run(Run(program))
        assert (ran.outcome.kind, engines.processes_started) == ("raises", started)
        assert "illegal memory access" in (ran.outcome.text or "")
    assert engines.run(Run(Program(config=SOUND, operations=OPERATIONS))).outcome.kind == "passes"


def test_children_end_with_their_parent(engines: Engines) -> None:
    engines.run(Run(Program(config=SOUND, operations=OPERATIONS)))
    children = [psutil.Process(pid) for pid in engines.pids]
    assert children
    engines.close()
    _, alive = psutil.wait_procs(children, timeout=30)
    assert not alive
