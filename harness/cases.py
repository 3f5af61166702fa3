"""Cases: a program, the patch it runs on, and what must happen, kept as a folder that a person can read."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from harness.checks import NAMES, CheckFailed, Checks
from harness.configuration import Value
from harness.engine.device import Device
from harness.engine.engine import Engine
from harness.errors import MalformedProgram, UsageError
from harness.patches import CASES
from harness.program import Program, first_problem

PROGRAM, EXPECTED, README = "program.json", "expected.json", "README.md"


class Outcome(Value):
    """What became of a program: it passed, failed a check, or the scheduler raised."""

    kind: Literal["passes", "fails", "raises"]
    check: str | None = None
    """The first check that failed."""
    step: int | None = None
    """Index of the step at which it failed or raised."""
    text: str | None = None
    """The first line of what the check or the error says; of an expected outcome a part of it."""

    def meets(self, expected: "Outcome") -> bool:
        """Whether this is what was expected."""
        same = (self.kind, self.check, self.step) == (expected.kind, expected.check, expected.step)
        return same and (expected.text is None or expected.text in (self.text or ""))

    def __str__(self) -> str:
        if self.kind == "passes":
            return "passes"
        by = f" {self.check}" if self.check else ""
        said = f": {self.text}" if self.text else ""
        return f"{self.kind}{by} at step {self.step}{said}"


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
    return Case(name=folder.name, program=program, expected=expected)


def all_folders(root: Path = CASES) -> list[Path]:
    """Every case below a folder."""
    return sorted(file.parent for file in root.rglob(EXPECTED))


def outcome_of(engine: Engine, program: Program, checks: Checks | None) -> Outcome:
    """Run a program with its checks, or with nothing looking on, and say what became of it."""
    try:
        engine.run(program, checks=checks)
    except CheckFailed as failure:
        return Outcome(kind="fails", check=failure.check, step=failure.step, text=str(failure.violations[0][1]))
    except UsageError:
        raise
    except Exception as error:
        text = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}".rstrip(": ")
        return Outcome(kind="raises", step=len(engine.trace.steps) - 1, text=text)
    return Outcome(kind="passes")


def replay(folder: Path, device: Device) -> Outcome:
    """Boot an engine of the case's own and run it; on a GPU, which a fault may poison, in a process of its own."""
    if device is Device.CPU:
        return replay_here(load(folder), device)
    return outcomes_apart("harness.cases", str(folder), device.value)[-1]


def outcomes_apart(module: str, *arguments: str) -> list[Outcome]:
    """The outcomes that `python -m MODULE ARGUMENTS` writes, a line each; how it ended where it writes none."""
    child = subprocess.run([sys.executable, "-m", module, *arguments], stdout=subprocess.PIPE, text=True, check=False)
    seen = [Outcome.model_validate_json(line) for line in child.stdout.splitlines() if line.startswith("{")]
    return seen or [Outcome(kind="raises", text=f"the process ended with code {child.returncode}")]


def replay_here(case: Case, device: Device) -> Outcome:
    """Run a case in this process; raises RefusedConfiguration where SGLang doesn't start."""
    with Engine(case.program.config, device) as engine:
        return outcome_of(engine, case.program, Checks(case.program, excuse_sglang=case.expected.excuse_sglang))


def main() -> None:
    """`python -m harness.cases FOLDER DEVICE`: the outcome as JSON on standard output."""
    folder, device = sys.argv[1:]
    print(json.dumps(replay_here(load(Path(folder)), Device(device)).model_dump()), flush=True)


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{file}: {error}") from None


if __name__ == "__main__":
    main()
