"""Engines that are measured in turn, each in processes of its own, all there at once.

On one GPU they share memory, and none works while another does: so they take turns within seconds, and each boots
once, however many rounds there are. They boot side by side; one that fails boots again alone, since SGLang takes what
others allocate meanwhile for its own, and may find too little left.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from select import select
from types import TracebackType
from typing import Protocol, Self

from harness.bench.tasks import Said, Wanted
from harness.configuration import EngineConfig
from harness.engine import simulated
from harness.engine.device import Device
from harness.errors import UsageError
from harness.isolation.gpus import on_gpu


class EngineFailed(Exception):
    """An engine that was booted, or should be, has ended or can't be asked any more."""


class Measured(Protocol):
    """An engine to be measured."""

    def boot(self) -> float:
        """Seconds that it took; raises UsageError where it is refused, EngineFailed where it fails."""

    def ask(self, wanted: Wanted) -> Said:
        """Do what is wanted, from the state after boot; raises EngineFailed."""

    def close(self) -> None:
        """End it."""


class InProcess:
    """An engine stepped by SGLang's own loop; from the start its process imports SGLang, which takes 20 s."""

    def __init__(
        self,
        config: EngineConfig,
        device: Device,
        accept_length: float | None = None,
        gpu: str | None = None,
        patience_s: float | None = None,
        quiet: bool = False,
    ) -> None:
        """Begin to import; it sees this GPU, or all that this process sees, and has so long for each answer.

        What a quiet one prints is lost.
        """
        self._patience_s = patience_s
        command = [sys.executable, "-m", "harness.bench.engine_process", config.model_dump_json(), device.value]
        environment = os.environ | simulated.environment(accept_length) | on_gpu(gpu)
        # Ctrl-C is the parent's to answer.
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if quiet else None,
            text=True,
            env=environment,
            start_new_session=True,
        )

    def boot(self) -> float:
        """Boot now."""
        said = self.ask(Wanted())
        if said.refused is not None:
            raise UsageError(said.refused)
        assert said.booted_s is not None
        return said.booted_s

    def close(self) -> None:
        """It has nothing to save."""
        self._process.kill()
        self._process.wait()

    def ask(self, wanted: Wanted) -> Said:
        """One line to its process, and one back."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(OSError):  # it has ended: its output, too
            self._process.stdin.write(wanted.model_dump_json() + "\n")
            self._process.stdin.flush()
        if not select([self._process.stdout], [], [], self._patience_s)[0]:
            raise EngineFailed(f"no answer in {self._patience_s:.0f} s: it hangs, or the machine is too busy to tell")
        line = self._process.stdout.readline()
        if not line:
            raise EngineFailed(f"its process ended with code {self._process.wait()}")
        said = Said.model_validate_json(line)
        if said.failed is not None:
            raise EngineFailed(said.failed)
        return said


class Engines:
    """Engines by name, from `with` to their end; those that fail are left out from then on."""

    def __init__(self, makers: Mapping[str, Callable[[], Measured]]) -> None:
        """Make each; it boots in `boot`."""
        self._makers = makers
        self._engines = {name: make() for name, make in makers.items()}
        self.boots_s: dict[str, float] = {}
        self.failures: dict[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for engine in self._engines.values():
            engine.close()
        self._engines.clear()

    def boot(self) -> None:
        """All of them; raises UsageError where one is refused."""
        print(f"booting {', '.join(self._engines)}", file=sys.stderr, flush=True)
        boots = {name: _begun(engine.boot) for name, engine in self._engines.items()}
        failed = {name: error for name, boot in boots.items() if isinstance(error := boot.exception(), EngineFailed)}
        self.boots_s = {name: boot.result() for name, boot in boots.items() if name not in failed}
        for name, failure in failed.items():
            self._boot_alone(name, failure)

    def _boot_alone(self, name: str, failure: EngineFailed) -> None:
        print(f"{name}: {failure}; booting it again, alone", file=sys.stderr, flush=True)
        self._engines[name].close()
        self._engines[name] = self._makers[name]()
        try:
            self.boots_s[name] = self._engines[name].boot()
        except EngineFailed as again:
            self.fail(name, again)

    def fail(self, name: str, failure: EngineFailed) -> None:
        """Leave one out, and say why."""
        self.failures[name] = str(failure)
        print(f"{name}: {failure}", file=sys.stderr, flush=True)
        self._engines.pop(name).close()

    def ask(self, name: str, wanted: Wanted) -> Said | None:
        """What one engine answers; None where it fails, or has failed."""
        if name not in self._engines:
            return None
        try:
            return self._engines[name].ask(wanted)
        except EngineFailed as failure:
            self.fail(name, failure)
            return None

    @property
    def names(self) -> list[str]:
        """Those that are left."""
        return list(self._engines)


def _begun(boot: Callable[[], float]) -> Future[float]:
    """What it returns or raises, from a thread that nobody has to wait for: Ctrl-C ends the command at once."""
    result: Future[float] = Future()

    def work() -> None:
        try:
            result.set_result(boot())
        except Exception as error:
            result.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    return result
