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
    return [
        Compared(
            seen.step, seen.request, seen.count, accepted(prompts[seen.request], seen.produced, program.config.steps)
        )
        for seen in trace.accepted()
    ]
