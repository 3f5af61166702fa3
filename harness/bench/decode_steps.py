"""Decode steps of one batch in SGLang's own loop: two runs, of which the second is longer by decode steps alone."""

from collections.abc import Iterator
from functools import partial

from harness.bench import own_loop
from harness.bench.timing import timed
from harness.engine.engine import Engine
from harness.program import Drain, Program, Submit


def decode_steps(engine: Engine, batch_size: int, tokens: tuple[int, int], repeats: int) -> tuple[float, int]:
    """Seconds and steps by which answers of the second number of tokens take longer than those of the first.

    Each run is repeated, and the fastest counts, since whatever else the machine does only adds.
    """
    runs = [_Timed(engine, batch_size, each) for each in tokens]
    short, long = (min(run.times(repeats)) for run in runs)
    return long - short, runs[1].iterations - runs[0].iterations


class _Timed:
    """`batch_size` requests of the same length, together from the first step to the last, in SGLang's own loop."""

    def __init__(self, engine: Engine, batch_size: int, tokens: int) -> None:
        self._engine = engine
        submit = Submit(count=batch_size, max_new_tokens=tokens)
        self._program = Program(config=engine.config, operations=(submit, Drain()))
        self.iterations = len(engine.run(self._program).steps)
        """Of the loop."""

    def times(self, repeats: int) -> Iterator[float]:
        """Seconds of each repetition, after one that isn't counted."""
        for repeat in range(repeats + 1):
            self._engine.reset()
            received = own_loop.script(self._program, self.iterations, self._engine.messages)
            seconds = timed(partial(self._engine.run_bare, received))
            if repeat:
                yield seconds
