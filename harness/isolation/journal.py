"""The journal of an engine: what it is about to do, on disk before it does it.

A fault, a kill or a hang takes a process without a word; its journal says which step it was in.
"""

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import MalformedProgram, UsageError
from harness.program import Drain, Operation, Program, Step


class JournalError(UsageError):
    """A journal can't be written, most likely for want of space."""


class Journal:
    """Lines of JSON, of the program that runs now: the program, then each operation and step as it begins.

    Each line is handed to the operating system in one write, so that it outlives the process.
    """

    def __init__(self, path: Path) -> None:
        """Open; raises JournalError where the file can't be had."""
        self._path = path
        try:
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise self._error(error) from None

    def begin(self, program: Program) -> None:
        """A program is about to run; what the journal held is dropped."""
        with suppress(OSError):  # not a file of which a part can be dropped: then it only grows
            os.ftruncate(self._file, 0)
        self._write(program.to_json(indent=None))

    def operation(self, index: int) -> None:
        """The program's operation number `index`, from 0, is about to begin."""
        self._write(f'{{"operation": {index}}}')

    def step(self, index: int) -> None:
        """The scheduler's step number `index`, from 0, is about to begin."""
        self._write(f'{{"step": {index}}}')

    def close(self) -> None:
        """Close the file, which stays."""
        os.close(self._file)

    def _write(self, line: str) -> None:
        content = line.encode() + b"\n"
        try:
            written = os.write(self._file, content)
        except OSError as error:
            raise self._error(error) from None
        if written < len(content):
            raise JournalError(f"journal {self._path}: no space left on device: free some, or set TMPDIR")

    def _error(self, error: OSError) -> JournalError:
        return JournalError(f"journal {self._path}: {error.strerror}: free some space, or set TMPDIR")


@dataclass(frozen=True, slots=True)
class Entry:
    """The last thing that a journal holds."""

    program: Program
    operation: int | None
    """Index of the operation that began last; None if none did."""
    step: int | None
    """Index of the step that began last."""
    steps_of_operation: int
    """How many steps the operation had begun, that one included."""

    @property
    def until(self) -> Program:
        """The program up to and with the last step: what is left of a longer operation is cut off."""
        if self.operation is None:
            return self.program
        before, last = self.program.operations[: self.operation], self.program.operations[self.operation]
        return self.program.model_copy(update={"operations": (*before, self._begun(last))})

    def _begun(self, operation: Operation) -> Operation:
        cut = isinstance(operation, Step | Drain) and self.steps_of_operation > 0
        return Step(count=self.steps_of_operation) if cut else operation

    def __str__(self) -> str:
        if self.operation is None:
            return f"before the first operation of {self.program!r}"
        return (
            f"in operation {self.operation}, {self.program.operations[self.operation]!r}, "
            + (f"step {self.step}, " if self.step is not None else "before the first step, ")
            + f"of {self.program!r}"
        )


def last(path: Path) -> Entry | None:
    """What a journal ends with; None where nothing had begun, or there is no journal."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return None
    if not lines:
        return None
    try:
        program = Program.from_json(lines[0])
    except MalformedProgram:  # killed while it wrote its first line
        return None
    operation, step, steps_of_operation = None, None, 0
    for entry in _entries(lines[1:]):
        if "operation" in entry:
            operation, steps_of_operation = entry["operation"], 0
        else:
            step = entry["step"]
            steps_of_operation += 1
    return Entry(program, operation, step, steps_of_operation)


def _entries(lines: list[str]) -> Iterator[dict[str, Any]]:
    for line in lines:
        try:
            yield json.loads(line)
        except json.JSONDecodeError:  # only the last line can be half written
            return
