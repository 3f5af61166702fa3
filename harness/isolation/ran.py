"""What comes back from a program that ran in a child process."""

from collections import Counter
from dataclasses import dataclass, field

from harness.outcome import Outcome
from harness.program import Program
from harness.trace import Trace


@dataclass(frozen=True, slots=True)
class Ran:
    """One run of one program."""

    program: Program
    outcome: Outcome
    until: Program
    """The program up to and with the step at which it ended; all of it where it passed."""
    trace: Trace = field(default_factory=Trace)
    """The rows until then, of a program that didn't pass or whose rows were asked for; none where the process died."""
    steps: int = 0
    """Scheduler steps that began."""
    labels: Counter[str] = field(default_factory=Counter)
    """What it reached, and how often (`harness.search.labels`)."""
    skipped: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Checks that couldn't be evaluated, with the reason."""
    looked: Counter[str] = field(default_factory=Counter)
    """Moments that each check looked at."""
    looked_in_part: Counter[str] = field(default_factory=Counter)
    """Of these, those in which it left something out."""
    answered: Counter[str] = field(default_factory=Counter)
    """How often each check that may lack a right answer had one to compare with."""
    imported: frozenset[str] = frozenset()
    """Of the files of SGLang that a diff changes, those that the process has imported."""
    host_bytes: int = 0
    """Resident memory of the process after it."""
    device_bytes: int = 0
    """Memory of the GPU that torch's tensors hold after it."""
    engine_seconds: float = 0.0
    """Time that the child spent on it."""
    message: str = ""
    """All that the check or the error says, with its traceback; of a process that hung, the stacks of its threads."""
    output: str = ""
    """The last lines that the child wrote, where it died or hung."""
