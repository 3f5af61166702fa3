"""Requests enter when others end, as many as wanted, in a loop that is no engine."""

import pytest

from harness.bench.closed_loop import PATIENCE_S, ClosedLoop
from harness.configuration import EngineConfig
from harness.engine.errors import NoProgress
from harness.serving.questions import Question, Questions


def questions(count: int) -> Questions:
    return Questions.of(EngineConfig(), count, max_new_tokens=4)


class Clock:
    """A second an iteration."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def run(asked: Questions, in_flight: list[int], lives: list[int]) -> tuple[ClosedLoop[int], list[int]]:
    """Let request i live for `lives[i]` iterations; returns the loop and how many ran in each."""
    clock = Clock()
    loop: ClosedLoop[int] = ClosedLoop(asked, in_flight, lambda _, number: number, clock)
    running: dict[int, int] = {}
    sizes = []
    for entering in loop:
        running |= {number: lives[number] for number in entering}
        sizes.append(len(running))
        clock.now += 1.0
        running = {number: left - 1 for number, left in running.items()}
        for number in [number for number, left in running.items() if left == 0]:
            del running[number]
            loop.ended(number, list(asked[number].answer or ()), 2)
    return loop, sizes


def test_one_enters_when_one_ends() -> None:
    loop, sizes = run(questions(6), [2] * 6, [1, 3, 2, 1, 4, 2])
    assert sizes == [2, 2, 2, 2, 2, 2, 1]
    assert [reply.latency_s for reply in loop.replies] == [1, 3, 2, 1, 4, 2]
    assert loop.wall_s == 7
    assert all(reply.problem is None and reply.decode_steps == 2 for reply in loop.replies)


def test_concurrency_follows_what_is_wanted() -> None:
    _, sizes = run(questions(7), [1, 3, 3, 3, 1, 1, 1], [1, 2, 2, 2, 1, 1, 1])
    assert sizes == [1, 3, 3, 1, 1, 1]


def test_more_wanted_than_there_are() -> None:
    _, sizes = run(questions(3), [10] * 3, [1, 2, 3])
    assert sizes == [3, 2, 1]


def test_wrong_tokens_are_told() -> None:
    asked = questions(1)
    loop: ClosedLoop[Question] = ClosedLoop(asked, [1], lambda question, _: question)
    assert next(iter(loop)) == [asked[0]]
    loop.ended(0, [0], None)
    assert loop.replies[0].problem == "wrong from output token 0: 1 tokens, must be 4"


def test_a_loop_in_which_nothing_ends_gives_up() -> None:
    clock = Clock()
    received = iter(ClosedLoop(questions(1), [1], lambda _, number: number, clock))
    assert next(received) == [0]
    clock.now = PATIENCE_S + 1
    with pytest.raises(NoProgress, match="no request ended in 300 s"):
        next(received)


def test_as_many_numbers_as_requests() -> None:
    with pytest.raises(ValueError, match="for each that can have ended"):
        ClosedLoop(questions(2), [1], lambda _, number: number)


def test_where_no_answer_is_known_tokens_are_counted() -> None:
    (asked,) = Questions.of_length(EngineConfig(), 16, [3], first_seed=5, known=False)
    assert asked.problem([100, 100, 100]) is None
    assert asked.problem([100]) == "1 tokens, must be 3"
    assert len(asked.prompt) == 16
