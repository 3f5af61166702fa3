"""A trace's rows as text, and what kind of step each was; a row that broke off says so instead of showing zeros."""

from enum import StrEnum

from harness.report.table import COLUMNS, cells
from harness.trace import Trace, TraceStep

BEFORE, AFTER = 8, 2
"""Rows of the table around a step."""
UNKNOWN = "-"


class StepKind(StrEnum):
    """What a scheduler step did."""

    PREFILL = "prefill"
    SPEC = "spec"
    PLAIN = "plain"
    BROKEN = "broken decode"
    """A decode whose forward didn't come, or had neither one token a request nor a tree's."""
    IDLE = "idle"


def kind_of(step: TraceStep) -> StepKind:
    """What a step did."""
    if step.spec:
        return StepKind.SPEC
    if step.plain:
        return StepKind.PLAIN
    if step.batch_size == 0:
        return StepKind.IDLE
    return StepKind.BROKEN if step.forward_mode in ("DECODE", "TARGET_VERIFY") else StepKind.PREFILL


def broken_off(trace: Trace) -> TraceStep | None:
    """The last row, where its iteration didn't come to an end: nobody read the free KV slots and the queue then."""
    last = trace.steps[-1] if trace.steps else None
    return last if last is not None and last.batch_size and last.kv_free == 0 else None


def heading() -> str:
    """The names of the columns."""
    return _joined([name for name, _ in COLUMNS])


def line(step: TraceStep, ended: bool = True) -> str:
    """One row; a dash for what isn't known, because its result wasn't processed or its iteration didn't end."""
    known = dict(zip((name for name, _ in COLUMNS), cells(step), strict=True))
    if step.batch_size and not step.tokens_out:
        known |= {"tokens out": UNKNOWN, "run as": "graph" if step.graph else UNKNOWN}
    if not ended:
        known |= {"waiting": UNKNOWN, "KV free": UNKNOWN}
    return _joined(list(known.values()))


def around(trace: Trace, failing: int | None) -> str:
    """The rows around a step, which is marked; the last ones where it isn't known."""
    last = len(trace.steps) - 1
    place = last if failing is None else min(failing, last)
    first, end = max(0, place - BEFORE), min(last, place + AFTER) + 1
    unended = broken_off(trace)
    rows = [
        ("> " if step.index == failing else "  ") + line(step, ended=step is not unended)
        for step in trace.steps[first:end]
    ]
    above = [f"  ... {first} before"] if first else []
    below = [f"  ... {last + 1 - end} after"] if end <= last else []
    return "\n".join(["  " + heading(), *above, *rows, *below])


class RunningTable:
    """Prints rows as a program runs, at once, so that they are there whatever happens next."""

    def __init__(self) -> None:
        self._printed = 0

    def add(self, step: TraceStep, ended: bool = True) -> None:
        """Print one row."""
        if self._printed == 0:
            print(heading())
        self._printed += 1
        print(line(step, ended), flush=True)

    def add_rest(self, trace: Trace) -> None:
        """Print the rows that were begun when the program ended."""
        unended = broken_off(trace)
        for step in trace.steps[self._printed :]:
            self.add(step, ended=step is not unended)


def _joined(values: list[str]) -> str:
    return "".join(value.rjust(width) for value, (_, width) in zip(values, COLUMNS, strict=True))
