"""What validations run programs with: what an interruption ends, and what it takes along."""

import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.isolation.ran import Ran
from harness.outcome import Outcome
from harness.program import Program, Submit
from harness.validation import lab
from tests.unit.validation.reports import plan

PATIENCE_SECONDS = 5.0


def interrupt() -> None:
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


def test_what_is_pursued_survives_an_interruption(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    watched, returned = threading.Event(), threading.Event()

    def pursuit(_engines: Any, _seed: Any, _at_once: Any, stopped: Any, _progress: Any) -> Callable[..., Any]:
        def pursue(*_: object) -> Any:
            watched.wait()
            interrupt()
            stop: threading.Event = stopped.__self__
            was_told = stop.wait(PATIENCE_SECONDS)
            returned.wait(0.3)  # for as long as who doesn't wait for it would need to return
            return was_told, None

        return pursue

    tested = plan(tmp_path)
    program = Program(config=tested.config(tested.workers[0]), operations=(Submit(),))
    monkeypatch.setattr(lab, "Pursuit", pursuit)
    with lab.Lab(tested, lambda _: watched.set()) as made:
        was_told: Any = made.pursue(Ran(program, Outcome(kind="fails", check="I9-tokens", step=2), program))
        returned.set()
    assert was_told is True


def test_what_runs_side_by_side_ends_with_an_interruption(tmp_path: Path) -> None:
    begun: list[int] = []
    with lab.Lab(plan(tmp_path), lambda _: None) as made:

        def work(item: int) -> None:
            begun.append(item)
            if item == 3:
                interrupt()
                assert made._stop.wait(PATIENCE_SECONDS)

        with pytest.raises(KeyboardInterrupt):
            list(made.side_by_side(work, range(10_000)))
    assert {0, 1, 2, 3} <= set(begun)
