"""Labels of prefills: the prefix cache, chunks, and rows of the request pool."""

from collections import deque
from collections.abc import Iterator, Sequence

from harness.program import Program
from harness.search.course import Course, Part, prefills
from harness.trace import Trace, TraceStep

AT_ONCE = 2
"""Steps between the last use of a row and its next: overlap scheduling gives it back a step later."""


def of_prefills(program: Program, trace: Trace, run: Sequence[Course]) -> Iterator[str]:
    """What was reached while requests were admitted."""
    for steps in prefills(trace):
        yield from _cache_hit(steps, run)
    for course in run:
        for number, stay in enumerate(course.stays()):
            chunks = [part for part in stay if part.prefill]
            yield from _chunks(program, course, chunks, again=number > 0)
    yield from _rows(program, run)


def _cache_hit(steps: Sequence[TraceStep], run: Sequence[Course]) -> Iterator[str]:
    """A run of prefills computed fewer tokens than its requests had, all of whom it completed."""
    needed: dict[int, int] = {}
    completed: set[int] = set()
    for step in steps:
        for number in step.requests:
            part = next(part for part in run[number].parts if part.step is step)
            needed[number] = len(run[number].request.prompt) + part.before
            if part.tokens:
                completed.add(number)
    if completed == needed.keys() and sum(step.tokens_in for step in steps) < sum(needed.values()):
        yield "prefix cache hit"


def _chunks(program: Program, course: Course, chunks: Sequence[Part], again: bool) -> Iterator[str]:
    """Of one request's prefill."""
    if len(chunks) < 2:
        return
    yield "chunked prefill"
    alone = [part.step.tokens_in for part in chunks if part.step.batch_size == 1]
    yield from ("chunk of K+1 tokens" for tokens in alone if tokens == program.config.steps + 1)
    last = chunks[-1]
    total = len(course.request.prompt) + last.before
    if again and last.step.batch_size == 1 and total - last.step.tokens_in > len(course.request.prompt):
        yield "chunk boundary in output that is prefilled again"


def _rows(program: Program, run: Sequence[Course]) -> Iterator[str]:
    """SGLang hands out the row that has been free for longest (`ReqToTokenPool.alloc`)."""
    stays = sorted(
        (stay[0].step.index, stay[0].place, stay[-1].step.index) for course in run for stay in course.stays()
    )
    unused = program.config.max_running_requests
    free: deque[int] = deque()
    held: list[int] = []
    for start, _, end in stays:
        free.extend(sorted(last for last in held if last < start))
        held = [last for last in held if last >= start]
        held.append(end)
        if unused:
            unused -= 1
        elif free:
            yield "row recycled"
            if free.popleft() >= start - AT_ONCE:
                yield "row recycled at once"
