"""`bench profile`, in an engine's process: decode steps of one batch in SGLang's own loop, timed, then traced.

Both at the same lengths, and those of any engine at the same: attention's time grows with them, and a spec step makes
more tokens than a plain one. So each part begins once every request has made `SETTLED_TOKENS`.
"""

import gzip
import json
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from harness.bench.breakdown import WINDOW, breakdown
from harness.bench.tasks import Profiled, Profiling
from harness.configuration import EngineConfig
from harness.engine.engine import Engine
from harness.serving.questions import Questions

SETTLED_TOKENS = 128
"""That each request has made before."""
STEPS = 20
"""That are timed, and that are traced."""
SKIPPED = 3
"""Steps before those, with the profiler on, which is slow at first."""
MARGIN = 12
"""Steps more that the answers have room for: of the last to settle, the first may be some ahead."""
PATIENCE = 4
"""Iterations until all have settled, at most, as a multiple of the tokens of an answer."""

Context = AbstractContextManager[Any]


def tokens_needed(config: EngineConfig) -> int:
    """Tokens of each answer, so that none ends before the last step, at the most that spec steps can accept."""
    return SETTLED_TOKENS + (SKIPPED + STEPS + MARGIN) * ((config.steps if config.speculative else 0) + 1)


def measure(engine: Engine, wanted: Profiling) -> Profiled:
    """Run the steps twice; raises RuntimeError where not all requests run together."""
    from torch import cuda  # by now an engine has
    from torch.profiler import ProfilerActivity, profile, record_function

    timed = _Course(engine, wanted, nullcontext(), nullcontext())
    timed.run()
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if cuda.is_available() else [])]
    tracing = profile(activities=activities, acc_events=True)
    traced = _Course(engine, wanted, tracing, record_function(WINDOW))
    with engine.phases() as names:
        traced.run()
    tracing.export_chrome_trace(str(wanted.trace))
    with gzip.open(wanted.trace, "rt") as trace:
        events = json.load(trace)["traceEvents"]
    return Profiled(
        batch_size=wanted.batch_size,
        step_ms=timed.seconds / STEPS * 1e3,
        kv_tokens=(traced.tokens_before, traced.tokens_after),
        breakdown=breakdown(events, names, STEPS),
    )


class _Course:
    """What the loop receives: all requests at once, then nothing, until the steps are done."""

    def __init__(self, engine: Engine, wanted: Profiling, tracing: Context, window: Context) -> None:
        """`tracing` is entered some steps before those that count, `window` around these."""
        self._engine, self._size = engine, wanted.batch_size
        self._tracing, self._window = tracing, window
        lengths = [tokens_needed(engine.config)] * wanted.batch_size
        self._questions = Questions.of_length(engine.config, wanted.prompt_tokens, lengths, 0, known=False)
        self._settled = wanted.prompt_tokens + SETTLED_TOKENS
        self.seconds = 0.0
        self.tokens_before = self.tokens_after = 0.0
        """KV tokens of a request, on average, when the steps began and when they ended."""

    def run(self) -> None:
        """From the state after boot."""
        self._engine.reset()
        self._engine.run_bare(self)

    def __iter__(self) -> Iterator[list[Any]]:
        generate = self._engine.messages.generate
        yield [generate(asked.submit, number, asked.prompt) for number, asked in enumerate(self._questions)]
        yield from self._until_settled()
        with self._tracing:
            yield from [[]] * SKIPPED
            self.tokens_before = self._mean_tokens()
            with self._window:
                started = time.perf_counter()
                yield from [[]] * STEPS
                self.seconds = time.perf_counter() - started
            self.tokens_after = self._mean_tokens()

    def _until_settled(self) -> Iterator[list[Any]]:
        for _ in range(PATIENCE * tokens_needed(self._engine.config)):
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
