"""A search from its plan to its finding, on engines that a function stands in for."""

import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from harness.configuration import EngineConfig, Toggle
from harness.engine.device import Device
from harness.errors import RefusedConfiguration, UsageError
from harness.isolation.messages import Run
from harness.isolation.ran import Ran
from harness.outcome import Outcome
from harness.program import Program
from harness.search import pursue
from harness.search import search as searching
from harness.search.finding import Finding
from harness.search.search import Plan, Search

CONFIG = EngineConfig(toggle=Toggle(threshold=2), max_running_requests=8)
OTHER = CONFIG.model_copy(update={"graphs": ()})
PASSES = Outcome(kind="passes")
FAILS = Outcome(kind="fails", check="I9-tokens", step=2)

Judge = Callable[[Program], Outcome]


class Stand:
    """In the place of `Nursery` and `Engines`: programs are judged, and nothing runs."""

    def __init__(self, judge: Judge, cold: Judge | None = None) -> None:
        self._judge, self._cold = judge, cold or judge
        self.programs: list[Program] = []
        self.stopped: Any = None
        """What a cold run was told to ask."""

    def run(self, wanted: Run, stopped: Callable[[], bool] = lambda: False, patient: bool = False) -> Ran:
        self.programs.append(wanted.program)
        outcome = self._judge(wanted.program)
        return Ran(wanted.program, outcome, wanted.program, steps=1, labels=Counter({"switched off": 1}))

    @property
    def nursery(self) -> Any:
        def run(wanted: Run, stopped: Callable[[], bool], environment: object = None) -> Ran:
            self.stopped = stopped
            return Ran(wanted.program, self._cold(wanted.program), wanted.program)

        return SimpleNamespace(device=Device.CPU, run=run)

    def __enter__(self) -> "Stand":
        return self

    def __exit__(self, *_: object) -> None:
        pass


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pursue, "environment", lambda device: SimpleNamespace(result=lambda: "here"))


def search(monkeypatch: pytest.MonkeyPatch, stand: Stand, **changes: Any) -> tuple[Search, Finding | None]:
    monkeypatch.setattr(searching, "Nursery", lambda *_: stand)
    monkeypatch.setattr(searching, "Engines", lambda *_: stand)
    plan = {"grid": [CONFIG, OTHER], "device": Device.CPU, "seed": 1, "examples": 30, "threads": 1} | changes
    made = Search(Plan(**plan))
    return made, made.run()


def many_requests(program: Program) -> Outcome:
    return FAILS if sum(submit.count for submit in program.submits) >= 5 else PASSES


def test_nothing_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    stand = Stand(lambda _: PASSES)
    made, finding = search(monkeypatch, stand)
    assert finding is None
    # Of 30 some are the same, and run once.
    assert 20 <= made.progress.programs == made.progress.crossing <= 30
    assert made.progress.configurations == {CONFIG, OTHER}


@pytest.mark.parametrize("threads", [1, 3])
def test_found_once_shrunk_and_run_again(monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    made, finding = search(monkeypatch, Stand(many_requests), threads=threads, examples=300)
    assert finding is not None
    assert len(finding.program.operations) == 1
    assert finding.program.submits[0].count == 5
    assert finding.rate == (3, 3)
    assert many_requests(finding.found) == FAILS
    assert made.progress.failure is not None


def test_a_flaky_failure_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    endings: Iterator[Outcome] = iter([FAILS, PASSES, FAILS])
    _, finding = search(monkeypatch, Stand(many_requests, lambda _: next(endings)))
    assert finding is not None
    assert finding.flaky
    assert finding.rate == (2, 3)


def test_what_a_bug_leaves_in_its_process_isnt_taken_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once a program has failed, every other does on that engine; from cold only what really is wrong."""
    broken: list[Program] = []

    def warm(program: Program) -> Outcome:
        if broken or many_requests(program) == FAILS:
            broken.append(program)
        return FAILS if broken else PASSES

    _, finding = search(monkeypatch, Stand(warm, cold=many_requests))
    assert finding is not None
    assert sum(submit.count for submit in finding.program.submits) == 5
    assert finding.rate == (3, 3)


def test_what_a_person_can_cause_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: Program) -> Outcome:
        raise UsageError("no space left on device")

    with pytest.raises(UsageError, match="no space left"):
        search(monkeypatch, Stand(full))


def test_a_full_disk_takes_no_finding_along(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: Program) -> Outcome:
        raise UsageError("no space left on device")

    made, finding = search(monkeypatch, Stand(many_requests, full))
    assert finding is not None
    assert finding.confirmations == []
    assert "no space left" in str(made.error)


def test_a_configuration_that_is_refused_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    def judge(program: Program) -> Outcome:
        if program.config == CONFIG:
            raise RefusedConfiguration("SGLang doesn't like it")
        return PASSES

    made, finding = search(monkeypatch, Stand(judge))
    assert finding is None
    assert made.progress.refused == {CONFIG: "SGLang doesn't like it"}
    assert made.progress.configurations == {OTHER}


def test_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = threading.Event()

    def judge(_: Program) -> Outcome:
        ran.set()
        return PASSES

    stand = Stand(judge)
    monkeypatch.setattr(searching, "Nursery", lambda *_: stand)
    monkeypatch.setattr(searching, "Engines", lambda *_: stand)
    made = Search(Plan([CONFIG], Device.CPU, seed=1))  # without end

    def watch(_: object) -> None:
        if ran.is_set():
            made.stop()

    assert made.run(watch) is None
    assert made.interrupted


def test_an_interruption_takes_no_finding_along(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that comes while a failure is run again from cold, by a thread that takes a while to end."""
    returned = threading.Event()

    def cold(program: Program) -> Outcome:
        stop: threading.Event = stand.stopped.__self__
        if not stop.is_set():
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            assert stop.wait(5.0)
        returned.wait(0.3)  # for as long as a search that doesn't wait for it would need to return
        return many_requests(program)

    stand = Stand(many_requests, cold)
    made, finding = search(monkeypatch, stand)
    returned.set()
    assert made.interrupted
    assert finding is not None
    assert many_requests(finding.program) == FAILS


def test_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    made, finding = search(monkeypatch, Stand(lambda _: PASSES), examples=None, seconds=0.0)
    assert finding is None
    assert made.progress.programs == 0
