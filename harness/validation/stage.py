"""What a stage of a validation found: plain values, written as they come, so that an interruption loses none."""

from enum import StrEnum

from pydantic import Field

from harness.configuration import Value
from harness.outcome import Outcome


class Status(StrEnum):
    """How a stage ended."""

    PASSED = "passed"
    FAILED = "failed"
    UNPROVEN = "unproven"
    """It could not be run, or reached nothing that would prove anything."""
    LEFT_OUT = "left out"
    """By the profile, or because an earlier stage failed."""


INTERRUPTED = "interrupted"
"""What an unproven stage says that a person ended."""


class Coverage(Value):
    """What the runs of a stage reached."""

    programs: int = 0
    steps: int = 0
    crossing: int = 0
    """Programs that switched speculation off or on."""
    configurations: int = 0
    labels: dict[str, int] = Field(default_factory=dict)
    """How often each thing of the alphabet was reached (`harness.search.labels`)."""
    looked: dict[str, int] = Field(default_factory=dict)
    """Moments that each check looked at."""
    looked_in_part: dict[str, int] = Field(default_factory=dict)
    """Of these, those in which it left something out."""
    answered: dict[str, int] = Field(default_factory=dict)
    """How often each check that may lack a right answer had one to compare with."""
    imported: tuple[str, ...] = ()
    """Of the files of SGLang that a diff changes, those that some process has imported."""
    skipped: dict[str, int] = Field(default_factory=dict)
    """What was left out, by `check: reason`."""
    refused: dict[str, str] = Field(default_factory=dict)
    """Configurations that SGLang refused, with its reason."""

    def __add__(self, other: "Coverage") -> "Coverage":
        return Coverage(
            programs=self.programs + other.programs,
            steps=self.steps + other.steps,
            crossing=self.crossing + other.crossing,
            configurations=self.configurations + other.configurations,
            labels=_sum(self.labels, other.labels),
            looked=_sum(self.looked, other.looked),
            looked_in_part=_sum(self.looked_in_part, other.looked_in_part),
            answered=_sum(self.answered, other.answered),
            imported=tuple(sorted({*self.imported, *other.imported})),
            skipped=_sum(self.skipped, other.skipped),
            refused=self.refused | other.refused,
        )

    @property
    def skipped_share(self) -> float:
        """Of all moments that checks looked at, those in which something was left out, 0 to 1."""
        return sum(self.looked_in_part.values()) / max(1, sum(self.looked.values()))

    @property
    def unanswered(self) -> list[str]:
        """Checks that left something out, and never had a right answer to compare with."""
        return [name for name, count in self.looked_in_part.items() if count and not self.answered.get(name)]


class Curve(Value):
    """Decode steps of one engine by batch size, each the median of the rounds."""

    engine: str
    batch_sizes: tuple[int, ...]
    step_ms: tuple[float, ...]
    tokens_per_s: tuple[float, ...]


class Failure(Value):
    """What failed, and where the reproducer is."""

    outcome: Outcome
    message: str = ""
    """All that the check or the error says."""
    folder: str | None = None
    """Of the reproducer, relative to the report; None where none could be written."""
    operations: int | None = None
    """Of the shortest program."""
    cold: tuple[int, int] = (0, 0)
    """How many of how many cold runs ended in the same way."""


class Stage(Value):
    """One stage."""

    name: str
    status: Status
    said: str
    """One line."""
    seconds: float = 0.0
    coverage: Coverage = Coverage()
    facts: tuple[tuple[str, str], ...] = ()
    """Figures, by name."""
    curves: tuple[Curve, ...] = ()
    failure: Failure | None = None


def _sum(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    return {name: one.get(name, 0) + other.get(name, 0) for name in (*one, *(n for n in other if n not in one))}
