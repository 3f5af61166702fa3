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
class Least:
    """What a search must have reached to prove anything."""

    programs: int
    share_of_grid: float
    """Of the configurations, 0 to 1."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Seconds that each stage may take at most; 0 leaves it out. Known sequences take as long as they take."""

    total: float
    """Of a validation that finds nothing: the search gets what the other stages leave."""
    tokens: float
    acceptance: float
    soak: float
    speed: float
    shrink: float
    """For making what is found shorter, beyond the total."""
    least: Least


BUDGETS = {
    Profile.QUICK: Budget(total=120, tokens=15, acceptance=15, soak=0, speed=0, shrink=20, least=Least(20, 0.0)),
    Profile.STANDARD: Budget(total=900, tokens=90, acceptance=60, soak=90, speed=150, shrink=60, least=Least(200, 0.5)),
    Profile.RELEASE: Budget(
        total=3600, tokens=300, acceptance=180, soak=600, speed=420, shrink=120, least=Least(800, 0.9)
    ),
}
