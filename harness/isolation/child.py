"""The parent's side of a child: what it answers, or how it ended."""

import os
import signal
import time
from dataclasses import dataclass
from multiprocessing import connection as connections
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import psutil

from harness.configuration import EngineConfig
from harness.errors import RefusedConfiguration, UsageError
from harness.isolation import machine
from harness.isolation.inside import JOURNAL, OUTPUT, STACKS
from harness.isolation.interruption import Stopped
from harness.isolation.journal import Entry, last
from harness.isolation.messages import Answer, Boot, Booted, BootFailed, Refused, Run
from harness.isolation.ran import Ran
from harness.outcome import Kind, Outcome
from harness.program import Program

TICK_SECONDS = 0.2
"""How often a parent that waits looks at its child."""
STACKS_SECONDS = 5.0
"""How long a child that hangs may take to say where."""
LINES_KEPT = 40
OUT_OF_MEMORY_KILLS = Path("/sys/fs/cgroup/memory.events")


class Interrupted(BaseException):
    """The parent was asked to stop while it waited; no Exception, so that nothing takes it for a failure."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a child may take before it counts as failed."""

    hang_seconds: float = 120.0
    """Without a step beginning or ending, and without a compiler of kernels at work on the machine."""
    compile_seconds: float = 900.0
    """Even with one."""
    boot_seconds: float = 600.0
    memory_bytes: int = 8 << 30
    """Resident memory; a child above it is killed before the machine runs out."""


class Child:
    """A process that boots engines and runs programs on them, one at a time."""

    def __init__(self, process: BaseProcess, connection: Connection, folder: Path, limits: Limits) -> None:
        self._process, self._connection = process, connection
        self._folder, self._limits = folder, limits
        self.config: EngineConfig | None = None
        """What its engine was booted from."""
        self.alive = True
        """Whether it can be asked for anything more."""

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self._process.pid is not None
        return self._process.pid

    def boot(self, config: EngineConfig, stopped: Stopped) -> Ran | None:
        """Boot an engine; None when it is there, else how that ended.

        Raises RefusedConfiguration where the configuration can't be had, Interrupted where `stopped` says so.
        """
        self.config = config
        nothing = Program(config=config)
        answer = self._ask(Boot(config), self._limits.boot_seconds, stopped)
        match answer:
            case Booted():
                return None
            case Refused(message=message):
                self.config = None
                raise RefusedConfiguration(message)
            case BootFailed(text=text, message=message):
                self.config = None
                return Ran(nothing, Outcome(kind="raises", text=text), nothing, message=message)
            case _:
                return self._ended(nothing, answer, None)

    def run(self, wanted: Run, stopped: Stopped) -> Ran:
        """Run a program; the child survives or doesn't, the answer comes in any case.

        Raises UsageError where the program can't run on its engine or the journal can't be written, Interrupted
        where `stopped` says so; the child is gone then.
        """
        answer = self._ask(wanted, self._limits.hang_seconds, stopped)
        if isinstance(answer, Ran):
            return answer
        if isinstance(answer, Refused):
            raise UsageError(answer.message)
        return self._ended(wanted.program, answer, last(self._folder / JOURNAL))

    def boot_and_run(self, wanted: Run, stopped: Stopped = lambda: False) -> Ran:
        """Run a program on an engine of its configuration, booted for it if need be; raises as both do."""
        failed = self.boot(wanted.program.config, stopped) if self.config != wanted.program.config else None
        return failed or self.run(wanted, stopped)

    def end(self) -> None:
        """End the process; again, nothing."""
        self.alive = False
        self._connection.close()
        if self._process.is_alive():
            self._process.join(1.0)  # it leaves by itself when its parent hangs up
        if self._process.is_alive():
            self._process.kill()
        self._process.join()

    def _ask(self, message: Any, patience_seconds: float, stopped: Stopped) -> "Any | _End":
        kills = _out_of_memory_kills()
        try:
            self._connection.send(message)
            return self._wait(
                patience_seconds, stopped, "the scheduler's start" if isinstance(message, Boot) else "a step"
            )
        except (EOFError, OSError):
            return self._died(kills)

    def _wait(self, patience_seconds: float, stopped: Stopped, doing: str) -> "Any | _End":
        moved, since = self._progress(), time.monotonic()
        looked = since
        while True:
            connections.wait([self._connection, self._process.sentinel], TICK_SECONDS)
            if self._connection.poll():
                answer: Answer = self._connection.recv()
                self.alive = not answer.last
                return answer.content
            if not self._process.is_alive():
                raise EOFError
            if stopped():
                self._kill()
                raise Interrupted
            if (seen := self._progress()) != moved:
                moved, since = seen, time.monotonic()
                looked = since
            elif time.monotonic() - looked > patience_seconds:
                looked = time.monotonic()
                if looked - since > self._limits.compile_seconds or not machine.compiling():
                    return self._hung(patience_seconds, doing)
            if (memory := self._memory()) > self._limits.memory_bytes:
                self._kill()
                allowed = f"the {self._limits.memory_bytes / 1e9:.1f} GB that a child may take"
                return _End("dies", f"out of memory: killed at {memory / 1e9:.1f} GB, more than {allowed}")

    def _progress(self) -> tuple[int, int] | None:
        try:
            status = (self._folder / JOURNAL).stat()
        except OSError:
            return None
        return status.st_size, status.st_mtime_ns

    def _memory(self) -> int:
        try:
            return int(psutil.Process(self.pid).memory_info().rss)
        except psutil.Error:
            return 0

    def _hung(self, seconds: float, doing: str) -> "_End":
        before = (self._folder / OUTPUT).stat().st_size
        os.kill(self.pid, STACKS)
        patience = time.monotonic() + STACKS_SECONDS
        size = before
        while time.monotonic() < patience and (size == before or size != (self._folder / OUTPUT).stat().st_size):
            size = (self._folder / OUTPUT).stat().st_size
            connections.wait([self._process.sentinel], TICK_SECONDS)
        stacks = (self._folder / OUTPUT).read_bytes()[before:].decode(errors="replace")
        stacks = stacks or f"none within {STACKS_SECONDS:g} s; {self._what_it_does()}"
        self._kill()
        return _End("hangs", f"{doing} didn't return within {seconds:g} s", stacks)

    def _what_it_does(self) -> str:
        try:
            process = psutil.Process(self.pid)
            others = ", ".join(child.name() for child in process.children(recursive=True)) or "none"
            return f"state of the process: {process.status()}; processes of its own: {others}"
        except psutil.Error as error:
            return str(error)

    def _died(self, kills: int) -> "_End":
        self.alive = False
        self._process.join()
        code = self._process.exitcode or 0
        if code >= 0:
            return _End("dies", f"the process ended with code {code}")
        name = signal.Signals(-code).name
        why = ""
        if name == "SIGKILL":
            ran_out = _out_of_memory_kills() > kills
            why = ": out of memory" if ran_out else ": from outside, or out of memory"
        return _End("dies", f"the process was killed by {name}{why}")

    def _kill(self) -> None:
        self.alive = False
        self._process.kill()
        self._process.join()

    def _ended(self, program: Program, end: "_End", entry: Entry | None) -> Ran:
        self.alive = False
        return Ran(
            program=program,
            outcome=Outcome(kind=end.kind, step=entry.step if entry else None, text=end.text),
            until=entry.until if entry else program,
            steps=(entry.step or 0) + 1 if entry else 0,
            message=end.stacks,
            output=self._output(),
        )

    def _output(self) -> str:
        try:
            lines = (self._folder / OUTPUT).read_text(errors="replace").splitlines()
        except OSError:
            return ""
        return "\n".join(lines[-LINES_KEPT:])


@dataclass(frozen=True, slots=True)
class _End:
    """How a child ended without an answer."""

    kind: Kind
    text: str
    stacks: str = ""


def _out_of_memory_kills() -> int:
    """How often the kernel killed for want of memory in this control group; 0 where that can't be read."""
    try:
        lines = OUT_OF_MEMORY_KILLS.read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)
