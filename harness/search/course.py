"""The course of each request through a run, as labels need it: the steps that it took part in."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from harness.program import Program, Submit
from harness.trace import RequestTrace, Trace, TraceStep


@dataclass(frozen=True, slots=True)
class Part:
    """One request's part in one step."""

    step: TraceStep
    place: int
    """Its row in the batch."""
    tokens: int
    """Tokens streamed to it; 0, too, where the step's result was dropped or never came."""
    before: int
    """Tokens streamed to it before."""

    @property
    def prefill(self) -> bool:
        """Whether the step prefilled it, or a chunk of it."""
        return not (self.step.spec or self.step.plain)

    @property
    def accepted(self) -> int:
        """Draft tokens accepted, those after its end included where SGLang counts them."""
        accepted = self.step.accepted
        return accepted[self.place] if accepted and self.place < len(accepted) else 0


@dataclass(frozen=True, slots=True)
class Course:
    """One request: what was asked, what came of it, and all its parts in order."""

    submit: Submit
    request: RequestTrace
    parts: tuple[Part, ...]

    @property
    def ended(self) -> bool:
        """Whether it ended by itself."""
        return self.request.finish_reason in ("length", "stop")

    @property
    def last(self) -> Part | None:
        """Its part in the step that gave it its last token."""
        return next((part for part in reversed(self.parts) if part.tokens), None)

    @property
    def modes(self) -> tuple[bool, bool]:
        """Whether a spec step, and whether a plain step, gave it tokens."""
        steps = [part.step for part in self.parts if part.tokens]
        return any(step.spec for step in steps), any(step.plain for step in steps)

    def stays(self) -> Iterator[tuple[Part, ...]]:
        """Its parts from each time that it was admitted to where it ended or was retracted."""
        stay: list[Part] = []
        for part in self.parts:
            if stay and part.prefill and self._admitted_again(stay[-1], part):
                yield tuple(stay)
                stay = []
            stay.append(part)
        if stay:
            yield tuple(stay)

    def _admitted_again(self, before: Part, part: Part) -> bool:
        """A prefill goes on with the chunk before; a request that was retracted misses a decode step at least."""
        follows = before.prefill and (part.step.index == before.step.index + 1 or not self.request.retractions)
        return not follows

    def retracted_at(self) -> list[Part]:
        """Its last part before each retraction that it came back from."""
        return [stay[-1] for stay in self.stays()][:-1]


def courses(program: Program, trace: Trace) -> list[Course]:
    """The course of every request, in order of submission."""
    submits = [submit for submit in program.submits for _ in range(submit.count)]
    parts: list[list[Part]] = [[] for _ in trace.requests]
    streamed = [0] * len(trace.requests)
    for step in trace.steps:
        for place, number in enumerate(step.requests):
            tokens = step.tokens_out[place] if place < len(step.tokens_out) else 0
            parts[number].append(Part(step, place, tokens, streamed[number]))
            streamed[number] += tokens
    return [
        Course(submit, request, tuple(own))
        for submit, request, own in zip(submits, trace.requests, parts, strict=False)
    ]


def prefills(trace: Trace) -> Iterator[list[TraceStep]]:
    """Runs of prefills with no other step between."""
    for prefill, steps in groupby(trace.steps, lambda step: bool(step.requests) and not (step.spec or step.plain)):
        if prefill:
            yield list(steps)
