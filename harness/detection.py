"""Which check sees which fault: each alone, and which is first when all look on."""

from collections.abc import Iterator
from dataclasses import dataclass

from harness.cases import Case, Outcome, all_folders, load, outcome_of
from harness.checks import FAMILIES, Checks
from harness.checks.base import Check
from harness.engine.device import Device
from harness.engine.engine import Engine
from harness.engine.errors import EngineError
from harness.patches import UNCHANGED


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


def patched_cases() -> list[Case]:
    """The cases of attempts and seeded faults."""
    return [case for folder in all_folders() if (case := load(folder)).program.config.patch != UNCHANGED]


def detect(case: Case, device: Device) -> Detected:
    """Run a case with all checks, with each alone, and with none."""
    selections: list[tuple[type[Check], ...]] = [FAMILIES, *((family,) for family in FAMILIES), ()]
    first, *alone, unchecked = _outcomes(case, device, selections)
    return Detected(case.name, first, {f.name: seen for f, seen in zip(FAMILIES, alone, strict=True)}, unchecked)


def _outcomes(case: Case, device: Device, selections: list[tuple[type[Check], ...]]) -> Iterator[Outcome]:
    engine: Engine | None = None
    try:
        for families in selections:
            if engine is None:
                engine = Engine(case.program.config, device)
            yield outcome_of(engine, case.program, Checks(case.program, families))
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
