"""Which check sees which fault: each alone, and which is first when all look on."""

from dataclasses import dataclass
from pathlib import Path

from harness.cases import Case, all_folders, load
from harness.checks import FAMILIES
from harness.checks.base import Check
from harness.isolation.engines import Engines
from harness.isolation.interruption import Stopped
from harness.isolation.messages import Run
from harness.isolation.nursery import Nursery
from harness.outcome import Outcome
from harness.patches.stack import UNCHANGED, sources

SELECTIONS: tuple[tuple[type[Check], ...], ...] = (FAMILIES, *((family,) for family in FAMILIES), ())
"""All checks, each alone, none."""


@dataclass(frozen=True, slots=True)
class Detected:
    """What is seen of one fault."""

    case: str
    first: Outcome
    """With all checks."""
    alone: dict[str, Outcome]
    """With each check alone, by its name."""
    unchecked: Outcome
    """With none: whether the scheduler notices by itself."""


def patched_folders() -> list[Path]:
    """The cases of attempts and seeded faults, as patches of the worker."""
    patches = [(folder, load(folder).program.config.patch) for folder in all_folders()]
    return [folder for folder, patch in patches if patch != UNCHANGED and not sources(patch)]


def detect(case: Case, nursery: Nursery, stopped: Stopped) -> Detected:
    """Run a case with all checks, with each alone, and with none, in a process of its own as long as it lives.

    Raises as `Engines.run`.
    """
    with Engines(nursery) as engines:
        runs = [Run(case.program, families or None) for families in SELECTIONS]
        first, *alone, unchecked = [engines.run(run, stopped).outcome for run in runs]
    return Detected(case.name, first, {f.name: seen for f, seen in zip(FAMILIES, alone, strict=True)}, unchecked)
