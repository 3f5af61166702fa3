"""A trace as Chrome's trace events, which Perfetto (https://ui.perfetto.dev) opens.

The format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU. A trace has no clock, so
a step is drawn as one millisecond.
"""

import json
from collections import defaultdict
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from harness.isolation.ran import Ran
from harness.report import facts
from harness.report.rows import StepKind, broken_off, kind_of
from harness.trace import RequestTrace, Trace, TraceStep

STEP_US = 1000
"""Pretended duration of a step, in microseconds, the format's unit."""
SCHEDULER, REQUESTS = 1, 2
"""Processes, as the format calls groups of tracks."""
STEPS_TRACK, FIRST_REQUEST_TRACK = 1, 10
CLOCK = "none: a step is drawn as 1 ms"

Event = dict[str, Any]


def to_json(ran: Ran) -> str:
    """The file's content."""
    happenings = sorted((*_step_events(ran.trace), *_request_events(ran.trace), *_failure(ran)), key=_place)
    content = {
        "traceEvents": [*_names(ran.trace), *happenings],
        "displayTimeUnit": "ms",
        "otherData": {
            "clock": CLOCK,
            "run": facts.headline(ran),
            "configuration": facts.conditions(ran.program.config),
        },
    }
    return json.dumps(content, indent=None, separators=(",", ":")) + "\n"


def _place(event: Event) -> tuple[int, int]:
    """In order of time, an outer span before those within it."""
    return event["ts"], -event.get("dur", 0)


def _names(trace: Trace) -> Iterator[Event]:
    yield _name("process_name", SCHEDULER, STEPS_TRACK, f"scheduler (clock: {CLOCK})")
    yield _name("thread_name", SCHEDULER, STEPS_TRACK, "steps")
    if trace.requests:
        yield _name("process_name", REQUESTS, FIRST_REQUEST_TRACK, "requests")
    for request in trace.requests:
        yield _name("thread_name", REQUESTS, _track(request.number), f"request {request.number}")


def _name(what: str, process: int, track: int, name: str) -> Event:
    return {"name": what, "ph": "M", "ts": 0, "pid": process, "tid": track, "args": {"name": name}}


def _track(request: int) -> int:
    return FIRST_REQUEST_TRACK + request


def _step_events(trace: Trace) -> Iterator[Event]:
    """The scheduler's steps, and counters of what the batch and the KV pool came to."""
    unended = broken_off(trace)
    for step in trace.steps:
        size = f" {step.batch_size}" * bool(step.batch_size)
        yield _span(f"{kind_of(step)}{size}", step.index, 1, SCHEDULER, STEPS_TRACK, _arguments(step))
        yield _counter("batch size", step.index, {"requests": step.batch_size})
        if step is not unended:
            # Read after the step, so that they hold from its end on.
            yield _counter("KV free", step.index + 1, {"tokens": step.kv_free})
            yield _counter("waiting", step.index + 1, {"requests": step.waiting})


def _arguments(step: TraceStep) -> dict[str, Any]:
    known = {
        "step": step.index,
        "forward mode": step.forward_mode,
        "requests": list(step.requests),
        "tokens in": step.tokens_in,
        "tokens out": list(step.tokens_out) if step.tokens_out else None,
        "accepted": list(step.accepted) if step.accepted is not None else None,
        "padded size": step.padded_size,
    }
    return {name: value for name, value in known.items() if value is not None}


def _request_events(trace: Trace) -> Iterator[Event]:
    """A span from a request's first step to its last, in it one for each stretch of like steps, and its end."""
    steps: dict[int, list[TraceStep]] = defaultdict(list)
    for step in trace.steps:
        for number in step.requests:
            steps[number].append(step)
    for request in trace.requests:
        if taken := steps.get(request.number):
            yield from _life(request, taken)


def _life(request: RequestTrace, taken: list[TraceStep]) -> Iterator[Event]:
    first, track = taken[0].index, _track(request.number)
    given = [step for step in taken if _tokens(step, request.number)]
    last = (given or taken)[-1].index if request.finish_reason else taken[-1].index
    known = {
        "prompt tokens": len(request.prompt),
        "output tokens": len(request.output),
        "finish reason": request.finish_reason,
        "retractions": request.retractions,
    }
    yield _span(f"request {request.number}", first, taken[-1].index + 1 - first, REQUESTS, track, known)
    decoded = False
    for kind, stretch in _stretches(taken):
        name = "prefill again" if kind is StepKind.PREFILL and decoded else kind.value
        decoded |= kind is not StepKind.PREFILL
        tokens = sum(_tokens(step, request.number) for step in stretch)
        yield _span(name, stretch[0].index, len(stretch), REQUESTS, track, {"tokens out": tokens})
    if request.finish_reason:
        end = f"{'aborted' if request.aborted else 'finished'}: {request.finish_reason}"
        yield _instant(end, last + 1, REQUESTS, track, "t")


def _stretches(taken: list[TraceStep]) -> Iterator[tuple[StepKind, list[TraceStep]]]:
    """Steps of one kind without a gap between them: a gap is a prefill of others, or a retraction."""
    placed = enumerate(taken)
    for (_, kind), group in groupby(placed, lambda pair: (pair[1].index - pair[0], kind_of(pair[1]))):
        yield kind, [step for _, step in group]


def _tokens(step: TraceStep, request: int) -> int:
    return step.tokens_out[step.requests.index(request)] if step.tokens_out else 0


def _failure(ran: Ran) -> Iterator[Event]:
    if ran.outcome.kind != "passes":
        step = ran.outcome.step if ran.outcome.step is not None else len(ran.trace.steps)
        said = {"said": ran.outcome.text or facts.clause(ran.outcome)}
        yield _instant(facts.mark(ran.outcome), step, SCHEDULER, STEPS_TRACK, "g") | {"args": said}


def _span(name: str, step: int, steps: int, process: int, track: int, arguments: dict[str, Any]) -> Event:
    at = {"ts": step * STEP_US, "dur": steps * STEP_US}
    return {"name": name, "ph": "X", **at, "pid": process, "tid": track, "args": arguments}


def _counter(name: str, step: int, values: dict[str, int]) -> Event:
    return {"name": name, "ph": "C", "ts": step * STEP_US, "pid": SCHEDULER, "tid": STEPS_TRACK, "args": values}


def _instant(name: str, step: int, process: int, track: int, scope: str) -> Event:
    return {"name": name, "ph": "i", "ts": step * STEP_US, "pid": process, "tid": track, "s": scope}
