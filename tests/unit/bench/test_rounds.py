"""Engines take turns; one that fails is left out, and time that is over ends it all."""

import time

import pytest

from harness.bench.engines import EngineFailed, Engines, Measured
from harness.bench.rounds import Rounds
from harness.bench.tasks import Answers, Said, Task, Wanted
from harness.errors import UsageError


def task(concurrency: int, number: int) -> Task:
    return Task(prompt_tokens=16, lengths=(number,), in_flight=(concurrency,), first_seed=number, known=False)


class Fake:
    """Answers, until it has answered often enough to fail."""

    def __init__(self, log: list[str], name: str, lives: float = float("inf"), failing_boots: int = 0) -> None:
        self._log, self._name, self._lives, self._failing_boots = log, name, lives, failing_boots
        self._boots = 0
        self.closed = False

    def boot(self) -> float:
        self._boots += 1
        if self._lives == 0 or self._boots <= self._failing_boots:
            raise EngineFailed("no memory")
        return float(self._boots)

    def ask(self, wanted: Wanted) -> Said:
        assert wanted.task is not None
        self._lives -= 1
        if self._lives < 0:
            raise EngineFailed("it ended")
        self._log.append(f"{self._name}{wanted.task.first_seed}")
        return Said(answers=Answers(replies=[], wall_s=1.0))

    def close(self) -> None:
        self.closed = True


def play(engines: dict[str, Measured], rounds: Rounds[int]) -> tuple[list[tuple[int, int, str]], Engines]:
    with Engines({name: iter([engine, engine]).__next__ for name, engine in engines.items()}) as running:
        running.boot()
        played = [place[:3] for place in rounds.play(running, task, lambda thing: task(thing, 0))]
    return played, running


def test_all_take_turns_and_warm_up_once() -> None:
    log: list[str] = []
    engines: dict[str, Measured] = {name: Fake(log, name) for name in "ab"}
    played, _ = play(engines, Rounds([1, 8], 2, float("inf")))
    assert played == [
        *((1, 1, "b"), (1, 1, "a"), (1, 8, "a"), (1, 8, "b")),
        *((2, 1, "b"), (2, 1, "a"), (2, 8, "a"), (2, 8, "b")),
    ]
    assert log == ["b0", "b1", "a0", "a1", "a0", "a2", "b0", "b2", "b3", "a3", "a4", "b4"]


def test_one_that_fails_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    log: list[str] = []
    failing = {"a": Fake(log, "a"), "b": Fake(log, "b", lives=3), "c": Fake(log, "c", lives=0)}
    played, running = play(dict(failing), Rounds([1, 8], 2, float("inf")))
    assert [name for _, _, name in played] == ["b", "a", "a", "a", "a"]
    assert running.failures == {"b": "it ended", "c": "no memory"}
    assert running.boots_s == {"a": 1.0, "b": 1.0}
    assert all(engine.closed for engine in failing.values())
    assert "b: it ended" in capsys.readouterr().err


def test_one_that_fails_beside_others_boots_again_alone(capsys: pytest.CaptureFixture[str]) -> None:
    engines: dict[str, Measured] = {"a": Fake([], "a"), "b": Fake([], "b", failing_boots=1)}
    played, running = play(engines, Rounds([1], 1, float("inf")))
    assert {name for _, _, name in played} == {"a", "b"}
    assert running.failures == {}
    assert running.boots_s == {"a": 1.0, "b": 2.0}
    assert "b: no memory; booting it again, alone" in capsys.readouterr().err


def test_a_refused_engine_ends_it() -> None:
    """By its own word, not as one that failed."""

    class Refused(Fake):
        def boot(self) -> float:
            raise UsageError("no such model")

    engines: dict[str, Measured] = {"a": Fake([], "a"), "b": Refused([], "b")}
    with pytest.raises(UsageError, match="no such model"):
        play(engines, Rounds([1], 1, float("inf")))


def test_time_that_is_over(capsys: pytest.CaptureFixture[str]) -> None:
    played, _ = play({"a": Fake([], "a")}, Rounds([1], 3, time.monotonic() - 1))
    assert played == []
    assert "out of time in round 1 of 3" in capsys.readouterr().err
