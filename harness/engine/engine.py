"""The engine: one scheduler, booted once, on which programs run."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, ClassVar, Protocol, Self

from harness.checks import Checks
from harness.configuration import EngineConfig
from harness.engine.device import Device
from harness.engine.errors import NoProgress
from harness.errors import UsageError
from harness.limits import check_program
from harness.models import check_tokens, vocabulary_size
from harness.patches import overlay, plugins
from harness.patches.stack import is_plugin, sources, worker
from harness.patches.workers import file_of
from harness.program import Abort, Drain, Flush, Operation, Program, Retract, Step, Submit
from harness.trace import RequestTrace, Trace, TraceStep

STALLED_ITERATIONS = 64
"""Iterations with neither a prefill nor a token, with requests pending, after which a drain gives up."""


def import_release(device: Device, patched_with: tuple[str, ...] = ()) -> Any:
    """SGLang, made ready for a device, behind the module that knows the release; the first time it takes 20 s.

    `patched_with` are the sources that change it; a process stays with those that it began with. Raises UsageError
    where they can't be had.
    """
    overlay.enter(patched_with)
    device.prepare()
    from harness.engine import v0_5_12  # imports SGLang, which reads what `prepare` set

    for plugin in filter(is_plugin, patched_with):
        plugins.call_once(plugin)
    return v0_5_12


class Recorder(Protocol):
    """Told of each thing before it happens (`harness.isolation.journal`)."""

    def begin(self, program: Program) -> None:
        """A program."""

    def operation(self, index: int) -> None:
        """One of its operations, from 0."""

    def step(self, index: int) -> None:
        """A step of the scheduler, from 0."""


class Engine:
    """SGLang's real scheduler in this process, stepped by hand.

    Boot takes seconds, so keep an engine and `run` many programs of its configuration on it: each starts from the
    state after boot. `close` lets another engine boot in the same process; one at a time.
    """

    _open: ClassVar["Engine | None"] = None

    def __init__(self, config: EngineConfig, device: Device, as_served: bool = False, copies: bool = True) -> None:
        """Boot; raises RefusedConfiguration where the configuration can't be had, UsageError for a missing device.

        `as_served` boots as a server does, with the seconds of garbage collection that are left out otherwise: for
        measuring a boot. Without `copies` of what graphs read and write, gigabytes where batches and vocabulary are
        large, a reset leaves that as it is: for measuring throughput, not for finding bugs.
        """
        named = worker(config.patch)
        if named is not None:
            file_of(named)
        self._vocabulary_size = vocabulary_size(config)
        if Engine._open is not None:
            raise RuntimeError("another engine is open in this process: close it first (SGLang's state is per process)")
        release = import_release(device, sources(config.patch))
        self.config = config
        self.device = device
        self._release = release
        self._session = release.Session(config, device.value, as_served, copies)
        self._messages: list[Any] = []
        self.journal: Recorder | None = None
        self.trace = Trace()
        self.closed = False
        Engine._open = self

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def run(
        self, program: Program, on_step: Callable[[TraceStep], None] | None = None, checks: Checks | None = None
    ) -> Trace:
        """Run a program from the state after boot and return its trace.

        `on_step` sees each row once its result is processed; `checks`, made for this program, look on at every step.
        Whatever the scheduler or a check raises comes through; the rows until then are in `trace`. Raises UsageError
        where the program can't run on this engine.
        """
        if program.config != self.config:
            raise UsageError("the program's configuration isn't this engine's: boot an engine from program.config")
        check_program(program)
        check_tokens(program, self._vocabulary_size)
        self.reset()
        self.watch(on_step, checks)
        if self.journal is not None:
            self.journal.begin(program)
        for index, operation in enumerate(program.operations):
            if self.journal is not None:
                self.journal.operation(index)
            self.execute(operation)
        self.trace.idle = not self._messages and self._session.idle
        return self.trace

    def watch(self, on_step: Callable[[TraceStep], None] | None = None, checks: Checks | None = None) -> None:
        """Start a new trace; `run` does."""
        probe = self._release.Probe(self._session.scheduler, on_step)
        if checks is not None:
            self._session.check(probe, checks)
        self._session.observe(probe)
        self.trace = probe.trace

    def execute(self, operation: Operation) -> None:
        """Run one operation of a program."""
        match operation:
            case Submit():
                self._submit(operation)
            case Step(count=count):
                for _ in range(count):
                    self._iterate()
            case Abort(request=number):
                self._abort(number)
            case Retract():
                self._session.force_retraction()
            case Flush():
                self._messages.append(self._release.requests.flush())
            case Drain():
                self._drain()

    @property
    def messages(self) -> Any:
        """The release's messages to a scheduler, for whoever sends them without an engine."""
        return self._release.requests

    @property
    def kv_tokens(self) -> int:
        """The KV pool's size, in tokens: less than was asked for where memory is short."""
        size: int = self._session.kv_tokens
        return size

    @property
    def speculating(self) -> bool | None:
        """Whether a toggle is on: of the last decode step, or as after boot; None where there is none."""
        on: bool | None = self._session.speculating
        return on

    def run_bare(
        self, received: Iterable[list[Any]], ended: Callable[[int, list[int], int | None], None] | None = None
    ) -> None:
        """SGLang's own loop over these messages, unwatched, until they end: what a traced run is measured against.

        `ended` is told of each request that ends: its number, its tokens and, where the engine speculates, the decode
        steps that it took part in.
        """
        self._session.run_own_loop(received, ended)

    @property
    def decoding(self) -> list[int]:
        """Tokens of each request that decodes, prompt and output; under overlap scheduling those processed by now."""
        lengths: list[int] = self._session.decoding
        return lengths

    def phases(self) -> AbstractContextManager[tuple[str, ...]]:
        """While it is entered torch's profiler records the phases of each step, whose names it returns."""
        recorded: AbstractContextManager[tuple[str, ...]] = self._session.phases()
        return recorded

    def reset(self) -> None:
        """Back to the state after boot, whatever the last program left; proves it or raises ResetError."""
        if self.closed:
            raise RuntimeError("this engine is closed: boot another")
        self._messages.clear()
        self._session.reset()

    def close(self) -> None:
        """Give back the scheduler's memory and process groups; again, nothing."""
        if not self.closed:
            self.closed = True
            Engine._open = None
            self._session.close()

    def _submit(self, submit: Submit) -> None:
        for prompt in submit.prompts():
            number = len(self.trace.requests)
            self.trace.requests.append(RequestTrace(number, prompt))
            self._messages.append(self._release.requests.generate(submit, number, prompt))

    def _abort(self, number: int) -> None:
        request = self.trace.requests[number]
        if request.finish_reason is None:
            request.aborted = True
            self._messages.append(self._release.requests.abort(number))

    def _drain(self) -> None:
        stalled = 0
        while self._messages or not self._session.idle:
            before = self.trace.tokens_streamed
            self._iterate()
            progressed = self.trace.tokens_streamed > before or self.trace.steps[-1].forward_mode == "EXTEND"
            stalled = 0 if progressed else stalled + 1
            if stalled > STALLED_ITERATIONS:
                raise NoProgress(f"neither a prefill nor a token in {stalled} iterations, with requests pending")

    def _iterate(self) -> None:
        if self.journal is not None:
            self.journal.step(len(self.trace.steps))
        messages, self._messages = self._messages, []
        self._session.iterate(messages)
