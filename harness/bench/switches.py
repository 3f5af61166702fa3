"""What it costs to switch speculation off, and on again: the steps around a switch against their modes' median steps.

As many long requests as the threshold allows run all the time. Now and then a short one joins, which takes the batch
across, and ends, which takes it back: batch sizes on both sides differ by one, so that steps can be compared.
Switching off is measured from the prefill of the one that joins, and has that in it.
"""

import statistics
import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from harness.bench.tasks import Switches, Switching
from harness.configuration import EngineConfig
from harness.engine.engine import Engine
from harness.serving.questions import Question, Questions

CYCLES = 5
SETTLED_STEPS = 12
"""Iterations before each joining."""
SHORT_TOKENS = 33
"""Of the request that joins: its prefill's, and one of each plain step."""
WINDOW = 2
"""Steps that are measured: in a loop without overlap, work that no token waits for runs on in the next one."""


def long_tokens(config: EngineConfig) -> int:
    """So many the long requests need to outlive all cycles, at the most that their spec steps can accept."""
    settled, around = SETTLED_STEPS * (config.steps + 1), 2 * WINDOW * (config.steps + 1)
    return CYCLES * (settled + around + SHORT_TOKENS) + settled


def measure(engine: Engine, wanted: Switching) -> Switches:
    """Run the cycles on an engine, toggled or not."""
    engine.reset()
    course = Course(engine, wanted)
    engine.run_bare(course, course.ended)
    return costs(course.times_s, course.modes, course.joined, lag=int(engine.config.overlap))


class Course:
    """The requests, and a note of each iteration."""

    def __init__(self, engine: Engine, wanted: Switching) -> None:
        self._engine = engine
        lengths = [long_tokens(engine.config)] * wanted.threshold + [SHORT_TOKENS] * CYCLES
        self._questions = Questions.of_length(engine.config, wanted.prompt_tokens, lengths, 0, known=False)
        self._threshold = wanted.threshold
        self._short_ended = 0
        self.times_s: list[float] = []
        """When each iteration began, and when the last ended."""
        self.modes: list[bool | None] = []
        """Of each iteration, whether the toggle's last decode step speculated; None without a toggle."""
        self.joined: list[int] = []
        """Iterations in which a short request was received."""

    def __iter__(self) -> Iterator[list[Any]]:
        yield from self._noted(self._messages(range(self._threshold)))
        for cycle in range(CYCLES):
            for _ in range(SETTLED_STEPS):
                yield from self._noted([])
            self.joined.append(len(self.times_s))
            yield from self._noted(self._messages([self._threshold + cycle]))
            while self._short_ended == cycle:
                yield from self._noted([])
        for _ in range(SETTLED_STEPS):
            yield from self._noted([])
        self.times_s.append(time.perf_counter())

    def ended(self, number: int, tokens: list[int], decode_steps: int | None) -> None:
        """A request ended."""
        self._short_ended += number >= self._threshold

    def _noted(self, messages: list[Any]) -> Iterator[list[Any]]:
        self.times_s.append(time.perf_counter())
        yield messages
        self.modes.append(self._engine.speculating)

    def _messages(self, numbers: Any) -> list[Any]:
        return [self._message(self._questions[number], number) for number in numbers]

    def _message(self, question: Question, number: int) -> Any:
        return self._engine.messages.generate(question.submit, number, question.prompt)


def costs(times_s: list[float], modes: list[bool | None], joined: list[int], lag: int) -> Switches:
    """From when iterations began, their modes, and where a request joined; without a toggle only joining costs.

    An iteration waits for the step that was launched `lag` iterations before: 1 under overlap scheduling, else 0. The
    launch of a prefill can take longer than the step before it, so that what is measured begins with the launch.
    """
    durations = [(after - before) * 1e3 for before, after in pairwise(times_s)]
    pairs = list(pairwise(modes))
    prefills = [place for place, pair in enumerate(pairs) if pair == (True, False)] if None not in modes else joined
    resumed = [place for place, pair in enumerate(pairs, 1) if pair == (False, True)]

    def window(place: int) -> range:
        return range(place, place + lag + WINDOW)

    aside = {*window(0), *joined, *(around for place in (*prefills, *resumed) for around in window(place))}
    medians = {
        mode: _median([ms for place, ms in enumerate(durations) if modes[place] is mode and place not in aside])
        for mode in (True, False, None)
    }

    def beyond(place: int) -> float:
        steps = [around - lag for around in window(place) if around - lag not in prefills]
        expected = [medians[modes[step]] or 0.0 for step in steps]
        return sum(durations[around] for around in window(place)) - sum(expected)

    return Switches(
        off_ms=[beyond(place) for place in prefills],
        on_ms=[beyond(place) for place in resumed],
        spec_step_ms=medians[True],
        plain_step_ms=medians[False] or medians[None],
    )


def _median(values: list[float]) -> float | None:
    return statistics.median(values) if values else None
