"""Cases: a program, the patch it runs on, and what must happen, kept as a folder that a person can read."""

import json
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from harness.checks import NAMES, Checks
from harness.configuration import Value
from harness.engine.device import Device
from harness.engine.engine import Engine
from harness.errors import MalformedProgram, UsageError
from harness.isolation.interruption import Stopped
from harness.isolation.messages import Run
from harness.isolation.nursery import Nurseries
from harness.outcome import Outcome, outcome_of
from harness.patches.beside import patch_beside
from harness.patches.stack import sources
from harness.patches.workers import CASES
from harness.program import Program, first_problem

PROGRAM, EXPECTED, README = "program.json", "expected.json", "README.md"


class Expected(Value):
    """The outcome on each device; None where the case isn't for it, or hasn't been seen on it."""

    version: Literal[1] = 1
    excuse_sglang: bool = True
    """Whether checks leave out what SGLang itself is known to do (cases/upstream), as they do everywhere else."""
    cpu: Outcome | None = None
    cuda: Outcome | None = None

    def on(self, device: Device) -> Outcome | None:
        """The outcome on a device."""
        return self.cpu if device is Device.CPU else self.cuda


class Case(Value):
    """One folder's content."""

    name: str
    program: Program
    expected: Expected


def load(folder: Path) -> Case:
    """Read a case; raises UsageError naming the file that is missing or unreadable, and what is wrong with it."""
    if not folder.is_dir():
        raise UsageError(f"no case {folder}: give a folder with {PROGRAM} and {EXPECTED}")
    try:
        program = Program.from_json(_read(folder / PROGRAM))
    except MalformedProgram as error:
        raise UsageError(f"{folder / PROGRAM}: {error}") from None
    try:
        expected = Expected.model_validate(json.loads(_read(folder / EXPECTED)))
    except ValidationError as error:
        raise UsageError(f"{folder / EXPECTED}: {first_problem(error)}") from None
    except ValueError as error:
        raise UsageError(f"{folder / EXPECTED}: not JSON: {error}") from None
    for outcome in (expected.cpu, expected.cuda):
        if outcome is not None and outcome.check is not None and outcome.check not in NAMES:
            raise UsageError(f"{folder / EXPECTED}: no check {outcome.check}: there are {', '.join(NAMES)}")
    return Case(name=folder.name, program=patch_beside(program, folder), expected=expected)


def all_folders(root: Path = CASES) -> list[Path]:
    """Every case below a folder."""
    return sorted(file.parent for file in root.rglob(EXPECTED))


def replay(case: Case, nurseries: Nurseries, stopped: Stopped = lambda: False) -> Outcome:
    """Run a case in a process of its own; raises as `Nursery.run`."""
    nursery = nurseries.of(sources(case.program.config.patch))
    return nursery.run(Run(case.program, excuse_sglang=case.expected.excuse_sglang), stopped).outcome


def replay_here(case: Case, device: Device) -> Outcome:
    """Run a case in this process, which a fault may take along; raises RefusedConfiguration where SGLang refuses it."""
    with Engine(case.program.config, device) as engine:
        return outcome_of(engine, case.program, Checks(case.program, excuse_sglang=case.expected.excuse_sglang))


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{file}: {error}") from None
