"""What a check is, and what it says."""

from collections.abc import Iterator
from dataclasses import dataclass

from harness.configuration import EngineConfig
from harness.observation import After, Compared, DraftCache, Forward, Launch, Replay
from harness.program import Program


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing that isn't as it must be."""

    what: str
    """The quantity, e.g. `kv_committed`."""
    expected: object
    seen: object
    request: int | None = None

    def __str__(self) -> str:
        of = "" if self.request is None else f" of request {self.request}"
        return f"{self.what}{of} is {self.seen}, must be {self.expected}"


@dataclass(frozen=True, slots=True)
class Skipped:
    """A check that can't be evaluated here."""

    reason: str


Findings = Iterator[Violation | Skipped]


class Check:
    """One invariant. Each hook yields what it finds; yielding nothing is having looked and found all in order."""

    name: str

    excuse_sglang = True
    """Whether what SGLang itself is known to do (cases/upstream) is skipped rather than found."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.config: EngineConfig = program.config
        self.answered = 0
        """Comparisons with a right answer; counted by checks that may lack one."""

    def at_launch(self, launch: Launch) -> Findings:
        """As a decode batch is handed to the worker."""
        return iter(())

    def at_forward(self, forward: Forward) -> Findings:
        """Before a forward of the target."""
        return iter(())

    def at_replay(self, replay: Replay) -> Findings:
        """Before a captured graph is replayed."""
        return iter(())

    def compared(self, compared: Compared) -> Findings:
        """After a forward that ran in both ways."""
        return iter(())

    def after_step(self, after: After) -> Findings:
        """After a step's result was processed."""
        return iter(())

    def draft_caches(self, caches: list[DraftCache]) -> Findings:
        """At a spec step, of requests that draft from a prefill or a plain step; when idle, of the radix cache."""
        return iter(())
