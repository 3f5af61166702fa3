"""Accepted lengths of a trace, against the model pair's closed form."""

from typing import NamedTuple

from harness.oracle import accepted
from harness.program import Program
from harness.trace import Trace


class Compared(NamedTuple):
    """One request in one spec step."""

    step: int
    request: int
    seen: int
    expected: int


def compare_acceptance(program: Program, trace: Trace) -> list[Compared]:
    """Every spec step of every request but its last: how far a run reaches past the end is the worker's business."""
    prompts = [prompt for submit in program.submits for prompt in submit.family()]
    produced = [0] * len(prompts)
    compared = []
    for step in trace.steps:
        for place, (number, count) in enumerate(zip(step.requests, step.tokens_out, strict=True)):
            ends = produced[number] + count == len(trace.requests[number].output)
            if step.accepted is not None and count and not ends:
                expected = accepted(prompts[number], produced[number], program.config.steps)
                compared.append(Compared(step.index, number, step.accepted[place], expected))
            produced[number] += count
    return compared
