"""How much time a validation takes, and what it leaves out for that."""

from dataclasses import dataclass
from enum import StrEnum


class Profile(StrEnum):
    """How thorough."""

    QUICK = "quick"
    STANDARD = "standard"
    RELEASE = "release"

    @property
    def budget(self) -> "Budget":
        """Its seconds."""
        return BUDGETS[self]


@dataclass(frozen=True, slots=True)
class Budget:
    """Seconds that each stage may take at most; 0 leaves it out."""

    total: float
    """Of a validation that finds nothing: the search gets what the other stages leave."""
    known: float
    tokens: float
    acceptance: float
    soak: float
    speed: float
    shrink: float
    """For making what is found shorter, beyond the total."""


BUDGETS = {
    Profile.QUICK: Budget(total=120, known=45, tokens=15, acceptance=15, soak=0, speed=0, shrink=20),
    Profile.STANDARD: Budget(total=900, known=300, tokens=90, acceptance=60, soak=90, speed=150, shrink=60),
    Profile.RELEASE: Budget(total=3600, known=900, tokens=300, acceptance=180, soak=600, speed=420, shrink=120),
}
