"""What validations run programs with: an interruption takes no finding along."""

import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from harness.isolation.ran import Ran
from harness.outcome import Outcome
from harness.program import Program, Submit
from harness.validation import lab
from tests.unit.validation.reports import plan


def test_what_is_pursued_survives_an_interruption(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    watched, returned = threading.Event(), threading.Event()

    def pursuit(*_: object) -> Any:
        watched.wait()
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        returned.wait(0.3)  # for as long as who doesn't wait for it would need to return
        return "finding", None

    tested = plan(tmp_path)
    program = Program(config=tested.config(tested.workers[0]), operations=(Submit(),))
    monkeypatch.setattr(lab, "Pursuit", lambda *_: pursuit)
    with lab.Lab(tested, lambda _: watched.set()) as made:
        found: Any = made.pursue(Ran(program, Outcome(kind="fails", check="I9-tokens", step=2), program))
        returned.set()
    assert found == "finding"
