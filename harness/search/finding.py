"""What a search found: a program that fails, as short as it could be made, and the evidence."""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.engine.device import Device
from harness.isolation.ran import Ran
from harness.outcome import Outcome
from harness.program import Program


@dataclass(frozen=True, slots=True)
class Finding:
    """One failure, shrunk, and run again from cold processes."""

    ran: Ran
    """The shrunk program's run: program, outcome, trace, message."""
    found: Program
    """The program that failed first, before it was shrunk."""
    device: Device
    seed: int | None
    """Of the search that found it; None where it was a known program."""
    confirmations: Sequence[Outcome]
    """What became of the shrunk program in processes that had run nothing before."""
    variants: Sequence[tuple[str, Outcome]]
    """The same program under other conditions, by name, e.g. `without CUDA graphs`, `CUDA_LAUNCH_BLOCKING=1`."""
    environment: str
    """What `python3 -m sglang.check_env` prints."""

    @property
    def program(self) -> Program:
        """The shrunk program."""
        return self.ran.program

    @property
    def rate(self) -> tuple[int, int]:
        """How many of how many cold runs ended as the shrunk run did: same kind, check and step."""
        seen = self.ran.outcome
        same = [(o.kind, o.check, o.step) == (seen.kind, seen.check, seen.step) for o in self.confirmations]
        return sum(same), len(same)

    @property
    def flaky(self) -> bool:
        """Whether some cold run ended differently."""
        same, all_of_them = self.rate
        return same < all_of_them
