"""Warm engines in children, one a configuration, bounded in number, for whoever has programs to run."""

import threading
from types import TracebackType
from typing import Self

from harness.configuration import EngineConfig
from harness.isolation.child import Child, Interrupted
from harness.isolation.interruption import Stopped
from harness.isolation.messages import Run
from harness.isolation.nursery import Nursery
from harness.isolation.ran import Ran

FATAL = ("dies", "hangs")


class Engines:
    """Runs programs, each on a warm engine of its configuration; may be shared by threads.

    An engine that is in use is never taken away; one that isn't makes room for another configuration, the longest
    unused first.
    """

    def __init__(self, nursery: Nursery, most: int = 1) -> None:
        self.nursery = nursery
        self._most = most
        self._free = threading.Condition()
        self._idle: list[Child] = []
        self._busy: set[Child] = set()
        self._stopping = threading.Event()
        self._background: list[threading.Thread] = []
        self.boots = 0
        """Engines booted so far, those that a child boots again after an error aside."""
        self.processes_started = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def run(self, wanted: Run, stopped: Stopped = lambda: False, patient: bool = False) -> Ran:
        """Run a program on a warm engine; `patient`, rather wait for one that is busy than boot another.

        Raises RefusedConfiguration where SGLang refuses it, UsageError where the program can't run, Interrupted where
        `stopped` says so.
        """
        child = self._take(wanted.program.config, patient)
        try:
            ran = self._run(child, wanted, stopped)
        except BaseException:
            self._give_back(child)
            raise
        self._give_back(child)
        if ran.outcome.kind in FATAL and ran.until.operations:
            self.prepare(wanted.program.config)
        return ran

    def prepare(self, config: EngineConfig) -> None:
        """Boot an engine in the background, where there is room."""
        thread = threading.Thread(target=self._prepare, args=(config,), daemon=True)
        self._background.append(thread)
        thread.start()

    @property
    def pids(self) -> list[int]:
        """Process ids of its children."""
        return [child.pid for child in (*self._idle, *self._busy)]

    def stop(self) -> None:
        """Let everything that runs or boots end as interrupted."""
        self._stopping.set()

    def close(self) -> None:
        """End all children."""
        self.stop()
        for thread in self._background:
            thread.join()
        for child in (*self._idle, *self._busy):
            child.end()
        self._idle.clear()
        self._busy.clear()

    def _run(self, child: Child, wanted: Run, stopped: Stopped) -> Ran:
        def done() -> bool:
            return self._stopping.is_set() or stopped()

        self.boots += child.config != wanted.program.config
        return child.boot_and_run(wanted, done)

    def _prepare(self, config: EngineConfig) -> None:
        with self._free:
            if len(self._idle) + len(self._busy) >= self._most:
                return
            child = self._start()
            self._busy.add(child)
        try:
            self.boots += 1
            if child.boot(config, self._stopping.is_set) is not None:
                child.config = None
        except (Interrupted, Exception):  # whoever needs the engine next will meet the reason again
            child.config = None
        self._give_back(child)

    def _start(self) -> Child:
        self.processes_started += 1
        return self.nursery.take()

    def _take(self, config: EngineConfig, patient: bool) -> Child:
        with self._free:
            while True:
                child = next((one for one in self._idle if one.config == config), None)
                room = len(self._idle) + len(self._busy) < self._most
                if child is None and patient and any(one.config == config for one in self._busy):
                    self._free.wait()
                    continue
                # Where a child has to import SGLang first, it is quicker to boot anew in one that has.
                if child is None and room and (self.nursery.forks or not self._idle):
                    child = self._start()
                elif child is None and self._idle:
                    child = self._idle[0]
                if child is not None:
                    break
                self._free.wait()
            if child in self._idle:
                self._idle.remove(child)
            self._busy.add(child)
            return child

    def _give_back(self, child: Child) -> None:
        with self._free:
            self._busy.discard(child)
            if child.alive:
                self._idle.append(child)
            self._free.notify_all()
        if not child.alive:
            child.end()
