"""Which check sees which fault: each alone, and which is first when all look on."""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.cases import Case, Outcome, all_folders, load, outcome_of, outcomes_apart
from harness.checks import FAMILIES, Checks
from harness.checks.base import Check
from harness.engine.device import Device
from harness.engine.engine import Engine
from harness.engine.errors import EngineError
from harness.patches import UNCHANGED

SELECTIONS: tuple[tuple[type[Check], ...], ...] = (FAMILIES, *((family,) for family in FAMILIES), ())
"""All checks, each alone, none."""
POISONED = "CUDA error"
"""What an error says after which a process can't use its GPU any more."""


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
    """The cases of attempts and seeded faults."""
    return [folder for folder in all_folders() if load(folder).program.config.patch != UNCHANGED]


def detect(folder: Path, device: Device) -> Detected:
    """Run a case with all checks, with each alone, and with none; on a GPU in processes of its own."""
    case = load(folder)
    outcomes = list(_outcomes(case, device, 0)) if device is Device.CPU else _outcomes_apart(folder, device)
    first, *alone, unchecked = outcomes
    return Detected(case.name, first, {f.name: seen for f, seen in zip(FAMILIES, alone, strict=True)}, unchecked)


def _outcomes(case: Case, device: Device, start: int) -> Iterator[Outcome]:
    engine: Engine | None = None
    try:
        for families in SELECTIONS[start:]:
            if engine is None:
                engine = Engine(case.program.config, device)
            yield outcome_of(engine, case.program, Checks(case.program, families) if families else None)
            engine = _usable(engine)
    finally:
        if engine is not None:
            engine.close()


def _usable(engine: Engine) -> Engine | None:
    """The engine, if a reset brings it back; what a fault broke for good, another boot replaces."""
    try:
        engine.reset()
    except (EngineError, RuntimeError):
        engine.close()
        return None
    return engine


def _outcomes_apart(folder: Path, device: Device) -> list[Outcome]:
    """Go on in a new process after whatever ended one, or its GPU."""
    outcomes: list[Outcome] = []
    while len(outcomes) < len(SELECTIONS):
        outcomes += outcomes_apart("harness.detection", str(folder), device.value, str(len(outcomes)))
    return outcomes


def main() -> None:
    """`python -m harness.detection FOLDER DEVICE FIRST`: an outcome a line, from that selection to the GPU's end."""
    folder, device, first = sys.argv[1:]
    for outcome in _outcomes(load(Path(folder)), Device(device), int(first)):
        print(json.dumps(outcome.model_dump()), flush=True)
        if POISONED in (outcome.text or ""):
            return


if __name__ == "__main__":
    main()
