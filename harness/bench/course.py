"""Decode steps of one batch in SGLang's own loop, at lengths that are any engine's.

Attention's time grows with them, and a spec step makes more tokens than a plain one: so the steps that count begin once
every request has made so many tokens.
"""

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from harness.configuration import EngineConfig
from harness.engine.engine import Engine
from harness.serving.questions import Questions

MARGIN = 12
"""Steps more that the answers have room for: of the last to settle, the first may be some ahead."""
PATIENCE = 4
"""Iterations until all have settled, at most, as a multiple of the tokens of an answer."""

Context = AbstractContextManager[Any]
NOTHING: Context = nullcontext()


@dataclass(frozen=True, slots=True)
class Stretch:
    """Which steps of a batch count."""

    settled_tokens: int
    """That each request has made before."""
    steps: int
    skipped: int = 0
    """Steps in between."""

    def tokens_needed(self, config: EngineConfig) -> int:
        """Of each answer, so that none ends before the last step, at the most that spec steps can accept."""
        at_most = (config.steps if config.speculative else 0) + 1
        return self.settled_tokens + (self.skipped + self.steps + MARGIN) * at_most


class Course:
    """What the loop receives: all requests at once, then nothing, until the steps are done."""

    def __init__(self, engine: Engine, batch_size: int, prompt_tokens: int, stretch: Stretch) -> None:
        self._engine, self._size, self._stretch = engine, batch_size, stretch
        self._answer_tokens = stretch.tokens_needed(engine.config)
        lengths = [self._answer_tokens] * batch_size
        self._questions = Questions.of_length(engine.config, prompt_tokens, lengths, 0, known=False)
        self._settled = prompt_tokens + stretch.settled_tokens
        self.seconds = 0.0
        """Of the steps that count."""
        self.tokens_before = self.tokens_after = 0.0
        """KV tokens of a request, on average, when these began and when they ended."""

    def run(self, tracing: Context = NOTHING, window: Context = NOTHING) -> None:
        """From the state after boot; `tracing` is entered before the skipped steps, `window` around those that count.

        Raises RuntimeError where not all requests run together.
        """
        self._engine.reset()
        self._engine.run_bare(self._received(tracing, window))

    def _received(self, tracing: Context, window: Context) -> Iterator[list[Any]]:
        generate = self._engine.messages.generate
        yield [generate(asked.submit, number, asked.prompt) for number, asked in enumerate(self._questions)]
        yield from self._until_settled()
        with tracing:
            yield from [[]] * self._stretch.skipped
            self.tokens_before = self._mean_tokens()
            with window:
                started = time.perf_counter()
                yield from [[]] * self._stretch.steps
                self.seconds = time.perf_counter() - started
            self.tokens_after = self._mean_tokens()

    def _until_settled(self) -> Iterator[list[Any]]:
        for _ in range(PATIENCE * self._answer_tokens):
            lengths = self._engine.decoding
            if len(lengths) == self._size and min(lengths) >= self._settled:
                return
            yield []
        raise RuntimeError(f"{self._size} requests never ran together")

    def _mean_tokens(self) -> float:
        lengths = self._engine.decoding
        if len(lengths) != self._size:
            raise RuntimeError(f"{len(lengths)} requests run, not {self._size}")
        return sum(lengths) / len(lengths)
