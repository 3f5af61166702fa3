"""Rounds: in each, every engine takes its turn at one thing before the next, so that what drifts, drifts for all."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from harness.bench.engines import Engines
from harness.bench.tasks import Answers, Task, Wanted

Thing = TypeVar("Thing")


@dataclass(frozen=True, slots=True)
class Rounds(Generic[Thing]):
    """What is measured in each round, how often and for how long."""

    things: Sequence[Thing]
    count: int
    until_s: float
    """By `time.monotonic`; what was begun by then ends."""

    def play(
        self, engines: Engines, task: Callable[[Thing, int], Task], warm_up: Callable[[Thing], Task]
    ) -> Iterator[tuple[int, Thing, str, Answers]]:
        """Round, from 1, thing, engine and its answers, as they come.

        `task` is given the measurement's number, from 1. Before its first round at a thing an engine warms up to it.
        """
        number = 0
        for turn in range(1, self.count + 1):
            for thing in self.things:
                number += 1
                for name in rotated(engines.names, number):
                    if time.monotonic() > self.until_s:
                        print(f"out of time in round {turn} of {self.count}", file=sys.stderr, flush=True)
                        return
                    wanted = [warm_up(thing)] if turn == 1 else []
                    for asked in (*wanted, task(thing, number)):
                        said = engines.ask(name, Wanted(task=asked))
                    if said is not None and said.answers is not None:
                        yield turn, thing, name, said.answers


def rotated(names: list[str], number: int) -> list[str]:
    """All of them, begun with another one each time."""
    first = number % len(names) if names else 0
    return names[first:] + names[:first]
