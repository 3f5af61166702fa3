"""Labels of decode batches: switches, and sizes."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from harness.configuration import EngineConfig
from harness.program import Program
from harness.search.course import Course
from harness.trace import Trace, TraceStep


def of_batches(program: Program, trace: Trace, run: Sequence[Course]) -> Iterator[str]:
    """What the decode steps reached, one by one and in pairs."""
    steps = list(trace.decode_steps())
    for step in steps:
        yield from _size(program.config, step)
    for before, after in pairwise(steps):
        yield from _pair(before, after)
        if before.spec != after.spec:
            yield from _switch(before, after, run)
    for first, second, third in zip(steps, steps[1:], steps[2:], strict=False):
        if first.spec == third.spec != second.spec:
            yield "off for one step" if first.spec else "on for one step"


def _size(config: EngineConfig, step: TraceStep) -> Iterator[str]:
    size, padded = step.batch_size, step.padded_size or step.batch_size
    largest = config.graphs[-1] if config.graphs else None
    if padded > size:
        yield "between captured sizes"
    if largest == size:
        yield "largest captured size"
    if largest is not None and size == largest + 1:
        yield "one more than the largest captured size"
    if size == config.max_running_requests and step.waiting:
        yield "as many as may run"
    if step.waiting:
        yield "waited for room"
    if config.toggle is None:
        return
    if step.spec and size <= config.toggle.threshold < padded:
        yield "padded across the threshold"
    if step.plain and size <= config.toggle.threshold:
        yield "held by hysteresis"


def _pair(before: TraceStep, after: TraceStep) -> Iterator[str]:
    earlier, later = set(before.requests), set(after.requests)
    if earlier & later and later - earlier:
        yield "joined during spec steps" if before.spec else "joined during plain steps"
    if len(earlier) == len(later) == 1 and earlier != later:
        yield "1 -> 0 -> 1"


def _switch(before: TraceStep, after: TraceStep, run: Sequence[Course]) -> Iterator[str]:
    switched = "switched off" if before.spec else "switched on"
    yield switched
    earlier, later = set(before.requests), set(after.requests)
    if earlier & later:
        yield f"{switched}, requests going on"
    if before.padded_size is not None and before.padded_size == after.padded_size:
        yield f"{switched} within a captured size"
    if before.spec:
        joined = [run[number] for number in later - earlier]
        if any(_came_back_between(course, before, after) for course in joined):
            yield "switched off by a request that came back"
        return
    left = [run[number] for number in earlier - later]
    if any(course.ended for course in left):
        yield "switched on by an end"
    if any(course.request.finish_reason == "abort" for course in left):
        yield "switched on by an abort"
    if any(part.step.index == before.index for course in left for part in course.retracted_at()):
        yield "switched on by a retraction"


def _came_back_between(course: Course, before: TraceStep, after: TraceStep) -> bool:
    _, *again = course.stays()
    return any(before.index < stay[0].step.index < after.index for stay in again)
