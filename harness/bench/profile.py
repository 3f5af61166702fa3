"""`bench profile`, in an engine's process: steps of one batch in SGLang's own loop, timed, then traced."""

import gzip
import json
import time
from collections.abc import Iterator
from typing import Any

from harness.bench.breakdown import WINDOW, breakdown
from harness.bench.tasks import Profiled, Profiling
from harness.configuration import EngineConfig
from harness.engine.engine import Engine
from harness.serving.questions import Questions

SETTLED_STEPS = 16
"""Iterations before the timed ones, the prefills among them, and again before the traced ones."""
TIMED_STEPS, TRACED_STEPS = 60, 20
STEPS = 2 * SETTLED_STEPS + TIMED_STEPS + TRACED_STEPS


def tokens_needed(config: EngineConfig) -> int:
    """Tokens of each answer, so that none ends before the last step, at the most that spec steps can accept."""
    return STEPS * ((config.steps if config.speculative else 0) + 1)


def measure(engine: Engine, wanted: Profiling) -> Profiled:
    """Run the steps."""
    engine.reset()
    with engine.phases() as names:
        course = _Course(engine, wanted)
        engine.run_bare(course)
    with gzip.open(wanted.trace, "rt") as trace:
        events = json.load(trace)["traceEvents"]
    found = breakdown(events, names, TRACED_STEPS)
    return Profiled(batch_size=wanted.batch_size, step_ms=course.step_ms, breakdown=found)


class _Course:
    """What the loop receives: all requests at once, then nothing, while it is timed and traced."""

    def __init__(self, engine: Engine, wanted: Profiling) -> None:
        self._engine, self._wanted = engine, wanted
        lengths = [tokens_needed(engine.config)] * wanted.batch_size
        self._questions = Questions.of_length(engine.config, wanted.prompt_tokens, lengths, 0, known=False)
        self.step_ms = 0.0

    def __iter__(self) -> Iterator[list[Any]]:
        from torch import cuda  # by now an engine has
        from torch.profiler import ProfilerActivity, profile, record_function

        generate = self._engine.messages.generate
        yield [generate(asked.submit, number, asked.prompt) for number, asked in enumerate(self._questions)]
        yield from [[]] * SETTLED_STEPS
        started = time.perf_counter()
        yield from [[]] * TIMED_STEPS
        self.step_ms = (time.perf_counter() - started) / TIMED_STEPS * 1e3
        activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if cuda.is_available() else [])]
        with profile(activities=activities, acc_events=True) as tracing:
            yield from [[]] * (SETTLED_STEPS - 1)
            with record_function(WINDOW):
                yield from [[]] * TRACED_STEPS
        tracing.export_chrome_trace(str(self._wanted.trace))
