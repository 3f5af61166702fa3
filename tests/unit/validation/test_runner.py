"""The order of stages: until one fails, without those that passed already, and through an interruption."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.engine.device import Device
from harness.validation import runner
from harness.validation.profile import Profile
from harness.validation.record import Record
from harness.validation.stage import Coverage, Stage, Status
from harness.validation.starting import NAME as STARTS
from harness.validation.verdict import BY_PROFILE, EARLIER
from tests.unit.validation.reports import plan

RUN: list[str] = []


class NoLab:
    """In the place of `Lab`."""

    def __init__(self, *_: Any) -> None:
        RUN.clear()
        self.workers = ["v1"]

    def __enter__(self) -> "NoLab":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def coverage(self) -> Coverage:
        return Coverage(programs=3)


def ends(name: str, status: Status) -> Callable[[Any], Stage]:
    def run(_: Any) -> Stage:
        RUN.append(name)
        return Stage(name=name, status=status, said=status.value)

    return run


def nothing_starts(lab: Any) -> Stage:
    lab.workers = []
    return Stage(name=STARTS, status=Status.UNPROVEN, said="refused")


def interrupted(_: Any) -> Stage:
    raise KeyboardInterrupt


@pytest.fixture
def validated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Runs stages that are given by name, and returns each with its status and what it says."""
    monkeypatch.setattr(runner, "Lab", NoLab)

    def run(*stages: tuple[str, bool, Callable[[Any], Stage]], resume: bool = False) -> list[tuple[str, Status, str]]:
        def given(*_: Any) -> Iterator[tuple[str, bool, Callable[[Any], Stage]]]:
            return iter(stages)

        monkeypatch.setattr(runner, "_stages", given)
        made = plan(tmp_path)
        record = Record(made, resume)
        try:
            return [(s.name, s.status, s.said) for s in runner.validate(made, record, lambda _: None)]
        finally:
            record.close()

    return run


def test_the_first_failure_ends_it(validated: Any) -> None:
    seen = validated(
        (STARTS, True, ends(STARTS, Status.PASSED)),
        ("soak", False, ends("soak", Status.PASSED)),
        ("search", True, ends("search", Status.FAILED)),
        ("step times", True, ends("step times", Status.PASSED)),
    )
    assert [status for _, status, _ in seen] == [Status.PASSED, Status.LEFT_OUT, Status.FAILED, Status.LEFT_OUT]
    assert [said for _, _, said in seen[1::2]] == [BY_PROFILE, EARLIER]
    assert [STARTS, "search"] == RUN


def test_what_is_unproven_doesnt_end_it_unless_nothing_starts(validated: Any) -> None:
    unproven = ("main job", True, ends("main job", Status.UNPROVEN))
    later = ("search", True, ends("search", Status.PASSED))
    assert validated((STARTS, True, ends(STARTS, Status.PASSED)), unproven, later)[-1][1] is Status.PASSED
    assert validated((STARTS, True, ends(STARTS, Status.UNPROVEN)), later)[-1][1] is Status.PASSED
    assert validated((STARTS, True, nothing_starts), later)[-1] == ("search", Status.LEFT_OUT, EARLIER)


def test_after_an_interruption_it_goes_on(validated: Any, tmp_path: Path) -> None:
    first, passed = (STARTS, True, ends(STARTS, Status.PASSED)), ("main job", True, ends("main job", Status.PASSED))
    seen = validated(first, passed, ("search", True, interrupted), ("soak", True, ends("soak", Status.PASSED)))
    assert seen[2:] == [("search", Status.UNPROVEN, "interrupted"), ("soak", Status.LEFT_OUT, "interrupted")]
    assert Record(plan(tmp_path), resume=True).begun == {}  # it didn't say how far it had come
    rest = [(name, True, ends(name, Status.PASSED)) for name in ("search", "soak")]
    seen = validated(first, passed, *rest, resume=True)
    assert [status for _, status, _ in seen] == [Status.PASSED] * 4
    assert [STARTS, "search", "soak"] == RUN


def test_what_failed_has_failed(validated: Any) -> None:
    """Going on with it is no second try."""
    first, soak = (STARTS, True, ends(STARTS, Status.PASSED)), ("soak", True, ends("soak", Status.PASSED))
    validated(first, ("search", True, ends("search", Status.FAILED)), soak)
    seen = validated(first, ("search", True, ends("search", Status.PASSED)), soak, resume=True)
    assert [status for _, status, _ in seen] == [Status.PASSED, Status.FAILED, Status.LEFT_OUT]
    assert [STARTS] == RUN


def test_a_gpu_that_isnt_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Device, "auto", classmethod(lambda _: Device.CPU))
    made = plan(tmp_path, device=Device.CUDA, profile=Profile.STANDARD)
    seen = list(runner.validate(made, Record(made, resume=False), lambda _: None))
    assert (seen[0].status, seen[0].said) == (Status.UNPROVEN, runner.NO_GPU)
    assert {(stage.status, stage.said) for stage in seen[1:]} == {(Status.LEFT_OUT, EARLIER)}
