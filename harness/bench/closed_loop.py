"""A closed loop: a request enters when another ends, so that as many as wanted are in flight until all are done."""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

from harness.engine.errors import NoProgress
from harness.serving.line import Reply
from harness.serving.questions import Question

PATIENCE_S = 300.0
"""Without a request ending, after which a loop gives up: answers may be long, and a GPU may compile kernels."""

Message = TypeVar("Message")


class ClosedLoop(Generic[Message]):
    """Iterating gives what a scheduler receives, a list an iteration, until `ended` has been told of every request."""

    def __init__(
        self,
        questions: Sequence[Question],
        in_flight: Sequence[int],
        message: Callable[[Question, int], Message],
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """`in_flight[i]` requests are wanted in flight while `i` have ended; `message` makes one for the scheduler."""
        if len(in_flight) != len(questions) or min(in_flight) < 1:
            raise ValueError("a wanted number of requests, 1 at least, for each that can have ended by then")
        self._questions, self._in_flight = questions, in_flight
        self._message, self._clock = message, clock
        self._entered_s: list[float] = []
        self._replies: dict[int, Reply] = {}
        self._last_end_s = 0.0

    def __iter__(self) -> Iterator[list[Message]]:
        self._last_end_s = self._clock()
        while len(self._replies) < len(self._questions):
            now = self._clock()
            if now - self._last_end_s > PATIENCE_S:
                raise NoProgress(f"no request ended in {PATIENCE_S:.0f} s, with requests in flight")
            yield self._entering(now)

    def _entering(self, now: float) -> list[Message]:
        first, ended = len(self._entered_s), len(self._replies)
        beyond = min(ended + self._in_flight[ended], len(self._questions))
        self._entered_s += [now] * (beyond - first)
        return [self._message(self._questions[number], number) for number in range(first, beyond)]

    def ended(self, number: int, tokens: list[int], decode_steps: int | None) -> None:
        """Request `number`, from 0, ended with these tokens."""
        self._last_end_s = self._clock()
        problem = self._questions[number].problem(tokens)
        self._replies[number] = Reply(self._last_end_s - self._entered_s[number], len(tokens), decode_steps, problem)

    @property
    def replies(self) -> list[Reply]:
        """In order of entering, once all have ended."""
        return [self._replies[number] for number in range(len(self._questions))]

    @property
    def wall_s(self) -> float:
        """From the first that entered to the last that ended."""
        return self._last_end_s - self._entered_s[0]
