"""`bench profile`, in an engine's process: decode steps of one batch in SGLang's own loop, timed, then traced."""

import gzip
import json

from harness.bench.breakdown import WINDOW, breakdown
from harness.bench.course import Course, Stretch
from harness.bench.tasks import Profiled, Profiling
from harness.engine.engine import Engine

STRETCH = Stretch(settled_tokens=128, steps=20, skipped=3)
"""Timed, and traced; the profiler is slow at first."""


def measure(engine: Engine, wanted: Profiling) -> Profiled:
    """Run the steps twice; raises RuntimeError where not all requests run together."""
    from torch import cuda  # by now an engine has
    from torch.profiler import ProfilerActivity, profile, record_function

    timed, traced = (Course(engine, wanted.batch_size, wanted.prompt_tokens, STRETCH) for _ in range(2))
    timed.run()
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if cuda.is_available() else [])]
    tracing = profile(activities=activities, acc_events=True)
    with engine.phases() as names:
        traced.run(tracing, record_function(WINDOW))
    tracing.export_chrome_trace(str(wanted.trace))
    with gzip.open(wanted.trace, "rt") as trace:
        events = json.load(trace)["traceEvents"]
    return Profiled(
        batch_size=wanted.batch_size,
        step_ms=timed.seconds / STRETCH.steps * 1e3,
        kv_tokens=(traced.tokens_before, traced.tokens_after),
        breakdown=breakdown(events, names, STRETCH.steps),
    )
