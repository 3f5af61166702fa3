"""The child's side: an engine in a process of its own, doing as the parent says."""

import faulthandler
import gc
import os
import signal
import threading
import time
import traceback
from collections import Counter
from contextlib import suppress
from multiprocessing import connection as connections
from multiprocessing import parent_process
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import psutil

from harness.checks import Checks
from harness.configuration import EngineConfig
from harness.engine.device import Device
from harness.engine.engine import Engine, import_release
from harness.errors import DEVICE_FAULT, UsageError
from harness.isolation.journal import Journal, last
from harness.isolation.messages import Answer, Boot, Booted, BootFailed, Refused, Run
from harness.isolation.ran import Ran
from harness.outcome import Outcome, attempt
from harness.patches.changed import imported
from harness.patches.stack import sources
from harness.trace import Trace

JOURNAL, OUTPUT = "journal.jsonl", "output.log"
"""Files in the folder of a child."""
STACKS = signal.SIGUSR1
"""Makes a child write the stacks of its threads to its output."""
FIRST_TO_BE_KILLED = "1000"


def serve(
    connection: Connection, folder: Path, device: Device, sources: tuple[str, ...], environment: dict[str, str]
) -> None:
    """Answer the parent's messages until it hangs up; a child that waits for the first imports SGLang meanwhile."""
    _settle(folder)
    os.environ.update(environment)
    server = _Server(folder / JOURNAL, device, make_ready(device, sources))
    while True:
        try:
            message = connection.recv()
        except (EOFError, OSError):
            break
        connection.send(Answer(server.answer(message), server.poisoned))
        if server.poisoned:
            break
    os._exit(0)  # a poisoned GPU, or a thread that doesn't end, mustn't hold it up


_not_importable: Exception | None = None
"""Why this process, or the template that it was forked from, has no SGLang: what a patch of it raised."""


def make_ready(device: Device, sources: tuple[str, ...]) -> Exception | None:
    """Import SGLang as far as any engine needs it; returns why it can't be, for who asks for an engine."""
    global _not_importable
    if _not_importable is None:
        try:
            import_release(device, sources).import_models(EngineConfig())
        except Exception as error:
            _not_importable = error
    return _not_importable


def _settle(folder: Path) -> None:
    """Make the process one that its parent can look after."""
    output = os.open(folder / OUTPUT, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
    os.dup2(output, 1)
    os.dup2(output, 2)
    faulthandler.enable(file=output)
    faulthandler.register(STACKS, file=output, all_threads=True)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to answer
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    with suppress(OSError):  # not Linux, or not allowed: then the parent is as likely to be killed
        Path("/proc/self/oom_score_adj").write_text(FIRST_TO_BE_KILLED)
    threading.Thread(target=_end_with_the_parent, daemon=True).start()


def _end_with_the_parent() -> None:
    parent = parent_process()
    if parent is not None:
        connections.wait([parent.sentinel])
        os._exit(1)


def _device_bytes(device: Device) -> int:
    if device is not Device.CUDA:
        return 0
    import torch  # by now an engine has

    return int(torch.cuda.memory_allocated())


class _Server:
    """The engine, and what is asked of it."""

    def __init__(self, journal: Path, device: Device, not_importable: Exception | None) -> None:
        self._path = journal
        self._journal = Journal(journal)
        self._device = device
        self._not_importable = not_importable
        self._engine: Engine | None = None
        self.poisoned = False

    def answer(self, message: Any) -> Any:
        """Do as a message says; what a person can cause is an answer, too."""
        try:
            match message:
                case Boot():
                    return self._boot(message)
                case Run():
                    return self._run(message)
        except UsageError as error:
            return Refused(str(error))
        raise TypeError(f"a parent said {message!r}")

    def _boot(self, wanted: Boot) -> Booted | BootFailed:
        started = time.perf_counter()
        self._close()
        try:
            if self._not_importable is not None:
                raise self._not_importable
            self._engine = Engine(wanted.config, self._device)
        except UsageError:
            raise
        except Exception as error:
            text = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
            self.poisoned = DEVICE_FAULT in str(error)
            return BootFailed(text, "".join(traceback.format_exception(error)))
        self._engine.journal = self._journal
        # All that exists by now stays: garbage collections needn't look at it again and again.
        gc.collect()
        gc.freeze()
        return Booted(time.perf_counter() - started)

    def _run(self, wanted: Run) -> Ran:
        started = time.perf_counter()
        if self._engine is None:  # the last program broke it for good
            self._engine = Engine(wanted.program.config, self._device)
            self._engine.journal = self._journal
        engine, program = self._engine, wanted.program
        checks = None
        if wanted.families is not None:
            checks = Checks(program, wanted.families, excuse_sglang=wanted.excuse_sglang)
        outcome, message = attempt(engine, program, checks)
        trace, failed = engine.trace, outcome.kind != "passes"
        entry = last(self._path)
        unclean = self._recover(outcome)
        if unclean and not failed:
            outcome, message = Outcome(kind="raises", step=len(trace.steps) - 1, text=unclean), unclean
        return Ran(
            program=program,
            outcome=outcome,
            until=entry.until if failed and entry is not None else program,
            trace=trace if failed or wanted.keep_trace else Trace(),
            steps=len(trace.steps),
            labels=wanted.summary(program, trace),
            skipped=checks.skipped if checks is not None else Counter(),
            looked=checks.looked if checks is not None else Counter(),
            looked_in_part=checks.looked_in_part if checks is not None else Counter(),
            answered=checks.answered if checks is not None else Counter(),
            imported=imported(sources(program.config.patch)),
            host_bytes=psutil.Process().memory_info().rss,
            device_bytes=_device_bytes(self._device),
            engine_seconds=time.perf_counter() - started,
            message=message,
        )

    def _recover(self, outcome: Outcome) -> str | None:
        """Reset, or where that doesn't bring the engine back, say why and boot anew at the next program."""
        assert self._engine is not None
        if outcome.device_fault:
            self.poisoned = True
            return None
        try:
            self._engine.reset()
        except Exception as error:
            self.poisoned = DEVICE_FAULT in str(error)
            if not self.poisoned:
                self._close()
            return f"{type(error).__name__}: {error}"
        return None

    def _close(self) -> None:
        if self._engine is not None:
            gc.unfreeze()
            self._engine.close()
            self._engine = None
