"""Labels of requests: how they end, are aborted and retracted, and how their tokens are chosen."""

from collections import Counter
from collections.abc import Iterator, Sequence

from harness.limits import output_limit
from harness.program import Program, Retract
from harness.search.course import Course, Part
from harness.trace import Trace


def of_requests(program: Program, trace: Trace, run: Sequence[Course]) -> Iterator[str]:
    """What became of each request, and of several at once."""
    for course in run:
        yield from _end(program, course)
        yield from _abort(program, course)
        yield from _sampling(course)
    yield from _ends_together(run)
    yield from _retractions(program, run)


def _end(program: Program, course: Course) -> Iterator[str]:
    last, output = course.last, course.request.output
    if not course.ended or last is None:
        return
    reason = course.request.finish_reason
    if reason == "stop":
        reason = "stop token" if output[-1] == course.submit.stop_token else "end of sequence"
    if last.prefill:
        yield "ended by its prefill"
    elif last.step.plain:
        yield f"ended in a plain step: {reason}"
    elif last.tokens > 1 or last.accepted + 1 > last.tokens:
        yield f"ended inside an accepted run: {reason}"
    limit = output_limit(program.config, len(course.request.prompt))
    if reason == "length" and len(output) == limit < course.submit.max_new_tokens:
        yield "context limit"


def _ends_together(run: Sequence[Course]) -> Iterator[str]:
    ends: dict[int, list[Part]] = {}
    for course in run:
        if course.ended and course.last is not None and not course.last.prefill:
            ends.setdefault(course.last.step.index, []).append(course.last)
    for parts in ends.values():
        if len(parts) > 1:
            yield "two ended in one step"
        step, first = parts[0].step, min(part.place for part in parts)
        mode = "spec" if step.spec else "plain"
        if any(_goes_on(run[number], step.index) for number in step.requests[first + 1 :]):
            yield f"ended in a {mode} step before one that goes on"


def _goes_on(course: Course, index: int) -> bool:
    return any(part.step.index > index and part.tokens for part in course.parts)


def _abort(program: Program, course: Course) -> Iterator[str]:
    if course.request.finish_reason != "abort" or not course.request.aborted:
        return
    if not course.parts:
        yield "abort of a waiting request"
    elif all(part.prefill for part in course.parts):
        yield "abort within a prefill"
    else:
        yield "abort of a running request"
    if program.config.overlap and course.parts and not course.parts[-1].tokens and not course.parts[-1].prefill:
        yield "abort with a result in flight"


def _retractions(program: Program, run: Sequence[Course]) -> Iterator[str]:
    forced = any(isinstance(operation, Retract) for operation in program.operations)
    ends = {course.last.step.index for course in run if course.ended and course.last is not None}
    last_steps: Counter[int] = Counter()
    for course in run:
        for part in course.retracted_at():
            last_steps[part.step.index] += 1
            yield "retraction"
            if not forced:
                yield "retraction for lack of memory"
            if part.step.index in ends:
                yield "retracted right after another ended"
            yield from _in_flight(course, part)
    yield from ("several retracted at once" for count in last_steps.values() if count > 1)


def _in_flight(course: Course, part: Part) -> Iterator[str]:
    """Of a request that was retracted after this part."""
    if part.tokens or part.prefill:
        return
    yield "retracted with a result in flight"
    if course.ended and part.before + 1 + part.accepted >= len(course.request.output):
        yield "retracted with its end in flight"


def _sampling(course: Course) -> Iterator[str]:
    spec, plain = course.modes
    submit = course.submit
    asked = {
        "drawn tokens": submit.temperature > 0,
        "penalty": submit.frequency_penalty != 0,
        "logprobs": submit.logprobs,
    }
    for name, wanted in asked.items():
        if wanted and (spec or plain):
            yield name
        if wanted and spec and plain:
            yield f"{name} in both modes"
