"""What became of a program: it passed, failed a check, raised, or took its process with it."""

import traceback
from typing import TYPE_CHECKING, Literal

from harness.checks import CheckFailed, Checks
from harness.configuration import Value
from harness.errors import DEVICE_FAULT, UsageError
from harness.program import Program

if TYPE_CHECKING:
    from harness.engine.engine import Engine

Kind = Literal["passes", "fails", "raises", "dies", "hangs"]


class Outcome(Value):
    """What became of a program.

    It passes, fails a check, the scheduler raises, the process dies (a fatal signal, memory) or a step doesn't return.
    """

    kind: Kind
    check: str | None = None
    """The first check that failed."""
    step: int | None = None
    """Index of the step at which it ended so."""
    text: str | None = None
    """The first line of what the check or the error says; of an expected outcome a part of it."""

    @property
    def device_fault(self) -> bool:
        """Whether it says what makes a GPU useless to its process (`harness.errors.DEVICE_FAULT`)."""
        return DEVICE_FAULT in (self.text or "")

    def meets(self, expected: "Outcome") -> bool:
        """Whether this is what was expected."""
        same = (self.kind, self.check, self.step) == (expected.kind, expected.check, expected.step)
        return same and (expected.text is None or expected.text in (self.text or ""))

    def __str__(self) -> str:
        if self.kind == "passes":
            return "passes"
        by = f" {self.check}" if self.check else ""
        said = f": {self.text}" if self.text else ""
        return f"{self.kind}{by} at step {self.step}{said}"


def outcome_of(engine: "Engine", program: Program, checks: Checks | None) -> Outcome:
    """Run a program with its checks, or with nothing looking on, and say what became of it."""
    return attempt(engine, program, checks)[0]


def attempt(engine: "Engine", program: Program, checks: Checks | None) -> tuple[Outcome, str]:
    """The outcome of a program, and all that the check or the error says; a UsageError comes through."""
    try:
        engine.run(program, checks=checks)
    except CheckFailed as failure:
        outcome = Outcome(kind="fails", check=failure.check, step=failure.step, text=str(failure.violations[0][1]))
        return outcome, str(failure)
    except UsageError:
        raise
    except Exception as error:
        text = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}".rstrip(": ")
        outcome = Outcome(kind="raises", step=len(engine.trace.steps) - 1, text=text)
        return outcome, "".join(traceback.format_exception(error))
    return Outcome(kind="passes"), ""
