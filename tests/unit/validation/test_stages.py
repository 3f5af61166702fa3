"""What stages make of how programs end."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.bench import curve
from harness.bench.engines import EngineFailed
from harness.bench.tasks import Said, Stepped, Wanted
from harness.configuration import EngineConfig, Worker
from harness.engine.device import Device
from harness.isolation.ran import Ran
from harness.outcome import Outcome
from harness.program import Program
from harness.validation import known, soak, speed, starting, tokens
from harness.validation.main_job import main_job
from harness.validation.stage import Stage, Status
from tests.unit.validation.labs import MadeUpLab, passes
from tests.unit.validation.reports import plan

V1 = (Worker.V1,)


def toggled(speculates: Callable[[int, int], bool]) -> Callable[[Program], Ran]:
    """The main job, by whether it speculates at a batch size with a threshold."""

    def run(program: Program) -> Ran:
        assert program.config.toggle is not None
        threshold = program.config.toggle.threshold
        return passes(program, *((size, speculates(size, threshold)) for size in (1, 1, 10, 10, 3, 3)))

    return run


def the_main_job(folder: Path, speculates: Callable[[int, int], bool]) -> Stage:
    lab: Any = MadeUpLab(folder, toggled(speculates), workers=V1)
    return main_job(lab)


def test_a_toggle_passes_the_main_job(tmp_path: Path) -> None:
    stage = the_main_job(tmp_path, lambda size, threshold: size <= threshold)
    assert (stage.status, stage.said) == (Status.PASSED, "batch sizes 1, 10, 3 with worker v1: all checks pass")


def test_one_that_is_the_wrong_way_round_fails(tmp_path: Path) -> None:
    """Both modes are seen, and every token is right."""
    stage = the_main_job(tmp_path, lambda size, threshold: size > threshold)
    assert stage.status is Status.FAILED
    assert stage.said.endswith("on above the threshold and off below: plain at 1, spec at 10, plain at 3")


@pytest.mark.parametrize(
    ("speculates", "doubt"),
    [
        (lambda size, threshold: True, "threshold 5: spec at 1, spec at 10, spec at 3"),
        (lambda size, threshold: False, "threshold 5: plain at 1, plain at 10, plain at 3"),
        (lambda size, threshold: size <= 5, "threshold 20: spec at 1, plain at 10, spec at 3"),
        (lambda size, threshold: size <= threshold // 2, "threshold 5: spec at 1, plain at 10, plain at 3"),
    ],
    ids=["always", "never", "a threshold of its own", "half the threshold"],
)
def test_one_that_doesnt_take_the_threshold_proves_nothing(tmp_path: Path, speculates: Any, doubt: str) -> None:
    stage = the_main_job(tmp_path, speculates)
    assert stage.status is Status.UNPROVEN
    assert doubt in stage.said
    assert "Does the patch take its threshold from env:SGLANG_SPECULATION_THRESHOLD" in stage.said


def test_a_worker_that_is_refused_stays_unproven(tmp_path: Path) -> None:
    lab: Any = MadeUpLab(tmp_path, lambda program: passes(program) if program.config.worker == "v1" else None)
    stage = starting.starts(lab)
    assert stage.status is Status.UNPROVEN
    assert stage.said.startswith("starts with worker v1, but worker v2 is refused: no such kernel")
    assert lab.workers == V1


def test_where_everything_is_refused_nothing_passes(tmp_path: Path) -> None:
    lab: Any = MadeUpLab(tmp_path, lambda _: None, workers=V1)
    stage = known.known(lab)
    assert stage.status is Status.UNPROVEN
    assert stage.said.startswith("0 of ")
    assert stage.said.endswith("configurations refused: no such kernel")


def test_an_installation_without_cases_proves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(known, "all_folders", list)
    lab: Any = MadeUpLab(tmp_path, passes, workers=V1)
    assert known.known(lab).status is Status.UNPROVEN


def test_an_engine_without_a_threshold_that_decodes_plainly_fails(tmp_path: Path) -> None:
    lab: Any = MadeUpLab(tmp_path, lambda program: passes(program, (1, False)), workers=V1)
    ran = tokens.compare(lab, Program(config=lab.plan.config(Worker.V1)))
    assert ran is not None
    assert (ran.outcome.kind, ran.outcome.text) == ("fails", "a plain step of 1 requests, and no threshold is set")


@pytest.mark.parametrize("at_once", [1, 2])
def test_each_worker_soaks_for_its_share_of_the_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, at_once: int
) -> None:
    given: list[float] = []
    monkeypatch.setattr(soak, "_waves", lambda lab, worker, seconds: given.append(seconds) or [])
    lab: Any = MadeUpLab(tmp_path, lambda _: None, at_once=at_once)
    soak.soak(lab)
    assert given == [lab.plan.profile.budget.soak * at_once / 2] * 2


class Paced:
    """In the place of `InProcess`: steps of these milliseconds, one a measurement, then it has ended."""

    def __init__(self, steps_ms: list[float]) -> None:
        self._steps_ms = iter(steps_ms)

    def boot(self) -> float:
        return 0.0

    def ask(self, wanted: Wanted) -> Said:
        assert wanted.stepping is not None
        for ms in self._steps_ms:
            return Said(stepped=Stepped(step_ms=ms, tokens_per_s=1e3 * wanted.stepping.batch_size / ms))
        raise EngineFailed("its process ended with code -11")

    def close(self) -> None:
        pass


@pytest.mark.parametrize(
    ("device", "patched_ms", "status"),
    [
        (Device.CUDA, [1.1, 1.4], Status.PASSED),
        (Device.CUDA, [1.6, 1.7], Status.FAILED),
        (Device.CUDA, [1.6, 1.7, 1.1, 1.6], Status.FAILED),
        (Device.CUDA, [1.1, 9.0], Status.UNPROVEN),
        (Device.CUDA, [1.1, 1.1, 1.1, 9.0, 1.1], Status.PASSED),
        (Device.CUDA, [1.1], Status.UNPROVEN),
        (Device.CPU, [1.6, 1.7], Status.PASSED),
    ],
    ids=["quick", "slow", "slow in most", "slow in half", "slow once", "ended", "emulated"],
)
def test_step_times(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, device: Device, patched_ms: list[float], status: Status
) -> None:
    """On the GPU that the validation has, and slow in most rounds or not proven to be."""

    def made(config: EngineConfig, device: Device, gpu: str | None, **_: object) -> Paced:
        assert gpu == "GPU-1234"
        return Paced([1.0] * 9 if config.toggle is None else patched_ms)

    monkeypatch.setattr(curve, "InProcess", made)
    monkeypatch.setattr(curve, "LEAST_ROUNDS", max(2, len(patched_ms)))
    monkeypatch.setattr(speed, "SIZES", (16,))
    lab: Any = MadeUpLab(tmp_path, lambda _: None, workers=V1, device=device, gpus=("GPU-1234",))
    stage = speed.speed(lab)
    assert stage.status is status, stage
    assert "code -11" in stage.said or stage.curves


@pytest.mark.parametrize(
    ("outcome", "cold", "status"),
    [
        (Outcome(kind="dies", step=3, text="killed by SIGKILL"), Outcome(kind="passes"), Status.UNPROVEN),
        (Outcome(kind="raises", step=3, text="OutOfMemoryError: CUDA"), Outcome(kind="passes"), Status.UNPROVEN),
        (Outcome(kind="dies", step=3, text="killed by SIGKILL"), Outcome(kind="dies", step=3), Status.FAILED),
        (Outcome(kind="dies", step=3, text="killed by SIGSEGV"), Outcome(kind="dies", step=4), Status.FAILED),
        (Outcome(kind="fails", check="I9-tokens", step=3), Outcome(kind="passes"), Status.FAILED),
    ],
)
def test_what_the_machine_may_have_done(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, outcome: Outcome, cold: Outcome, status: Status
) -> None:
    monkeypatch.setattr("harness.report.reproducer.write", lambda finding, folder: folder / "mine")
    made = plan(tmp_path, workers=V1)
    failing = Ran(Program(config=made.config(Worker.V1)), outcome, Program(config=made.config(Worker.V1)))
    lab: Any = MadeUpLab(tmp_path, lambda _: failing, colds=[cold] * 3, workers=V1)
    stage = known.known(lab)
    assert (stage.status, stage.failure is not None) == (status, True)
