"""Children that have run nothing yet: forked from a template on the emulated device, spawned ahead for a GPU."""

import json
import os
import shutil
import signal
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from multiprocessing import get_context, resource_tracker
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Self

from harness.engine.device import Device
from harness.errors import UsageError
from harness.isolation.child import Child, Limits
from harness.isolation.gpus import on_gpu
from harness.isolation.inside import serve
from harness.isolation.interruption import Stopped
from harness.isolation.messages import Run
from harness.isolation.ran import Ran

TEMPLATE_SOURCES = "TOGGLE_HARNESS_TEMPLATE_SOURCES"
"""Tells the template which SGLang to import: the sources that change it, as JSON."""
SPARES_ON_A_GPU = 3
"""Children that import SGLang (20 s) in the background: as many as a finding is run again in."""


class Nursery:
    """Starts children, and has some ready; all run SGLang with the same sources (`harness.patches.stack`)."""

    def __init__(
        self,
        device: Device,
        gpu: str | None = None,
        limits: Limits | None = None,
        sources: tuple[str, ...] = (),
    ) -> None:
        """On one GPU, by its identifier, or the first that is visible; raises UsageError for want of a folder."""
        self.device, self.sources, self._limits = device, sources, limits or Limits()
        self._environment = on_gpu(gpu)
        self._context = _context(device, sources)
        try:
            self._folder = Path(tempfile.mkdtemp(prefix="toggle-harness-"))
        except OSError as error:
            raise UsageError(f"no folder for journals: {error.strerror}: free some space, or set TMPDIR") from None
        self._lock = threading.Lock()
        self._started = 0
        self._spares: deque[Child] = deque()
        self._stock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @property
    def forks(self) -> bool:
        """Whether children come from a template, and so begin with SGLang imported."""
        return self._context.get_start_method() == "forkserver"

    def take(self, environment: dict[str, str] | None = None) -> Child:
        """A child that has run nothing; with an environment of its own, one that is started for it."""
        if environment:
            return self._start(environment)
        with self._lock:
            child = self._spares.popleft() if self._spares else None
        self._stock()
        return child or self._start({})

    def run(self, wanted: Run, stopped: Stopped = lambda: False, environment: dict[str, str] | None = None) -> Ran:
        """Run a program in a process that has run nothing before, which ends then; raises as `Child` does."""
        child = self.take(environment)
        try:
            return child.boot_and_run(wanted, stopped)
        finally:
            child.end()

    def close(self) -> None:
        """End the spares and remove the folder; children that were taken have ended by then."""
        for child in self._spares:
            child.end()
        self._spares.clear()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _stock(self) -> None:
        wanted = SPARES_ON_A_GPU if self.device is Device.CUDA else 0
        with self._lock:
            missing = wanted - len(self._spares)
        for _ in range(missing):
            self._spares.append(self._start({}))

    def _start(self, environment: dict[str, str]) -> Child:
        with self._lock:
            self._started += 1
            folder = self._folder / f"child-{self._started}"
        ours, theirs = self._context.Pipe()
        try:
            folder.mkdir()
        except OSError as error:
            raise UsageError(f"no folder for a journal: {error.strerror}: free some space, or set TMPDIR") from None
        arguments = (theirs, folder, self.device, self.sources, self._environment | environment)
        try:
            process = self._process(arguments)
        except EOFError:  # a patch of SGLang has ended the template: a child of its own can tell how
            self._context = get_context("spawn")
            process = self._process(arguments)
        theirs.close()
        return Child(process, ours, folder, self._limits)

    def _process(self, arguments: tuple[object, ...]) -> BaseProcess:
        process: BaseProcess = self._context.Process(  # type: ignore[attr-defined]
            target=serve, args=arguments, daemon=True
        )
        spawned = self._context.get_start_method() == "spawn"
        with self._lock, _unsaid(), _without_main(), _without_ctrl_c() if spawned else nullcontext():
            process.start()
        return process


class Nurseries:
    """A nursery for each SGLang that is asked for: as it is installed, or with sources that change it."""

    def __init__(self, device: Device, gpu: str | None = None, limits: Limits | None = None) -> None:
        self._make = partial(Nursery, device, gpu, limits)
        self._lock = threading.Lock()
        self._by_sources: dict[tuple[str, ...], Nursery] = {}
        self.of(())  # the first gets the template, and that is the one with most to do

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for nursery in self._by_sources.values():
            nursery.close()

    def of(self, sources: tuple[str, ...]) -> Nursery:
        """The one whose children run SGLang with these sources."""
        with self._lock:
            if sources not in self._by_sources:
                self._by_sources[sources] = self._make(sources)
            return self._by_sources[sources]


@contextmanager
def _without_main() -> Iterator[None]:
    """Keep children from running the parent's main module again: it may be a script, or a notebook."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


@contextmanager
def _without_ctrl_c() -> Iterator[None]:
    """Keep it from children until they ignore it: what they import until then would end in a traceback of theirs."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _unsaid() -> Iterator[None]:
    """multiprocessing's tracker tidies up after children that were killed, and would say so at the end.

    It is started with the first child, with the warnings that are switched off then.
    """
    sys.warnoptions.append("ignore:resource_tracker")
    try:
        resource_tracker.ensure_running()
        yield
    finally:
        sys.warnoptions.remove("ignore:resource_tracker")


_template_sources: tuple[str, ...] | None = None
"""Of the one template that a process can have: those that it first asked for."""


def _context(device: Device, sources: tuple[str, ...]) -> BaseContext:
    """To fork children from the template where it fits, else to spawn them."""
    global _template_sources
    if device is Device.CUDA:
        return get_context("spawn")
    if _template_sources is None:
        _template_sources = sources
        os.environ[TEMPLATE_SOURCES] = json.dumps(sources)
    if sources != _template_sources:
        return get_context("spawn")
    context = get_context("forkserver")
    context.set_forkserver_preload(["harness.isolation.template"])
    return context
