"""One booted scheduler of this release, behind the calls that the engine makes."""

import importlib
from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any

from harness.checks import Checks
from harness.configuration import EngineConfig
from harness.engine.v0_5_12.boot import SCHEDULER, boot, shut_down
from harness.engine.v0_5_12.buffers import toggle
from harness.engine.v0_5_12.ends import Ended, Ends
from harness.engine.v0_5_12.graph_watch import GraphWatch
from harness.engine.v0_5_12.loop import EventLoop, run_unattended
from harness.engine.v0_5_12.observer import Observer
from harness.engine.v0_5_12.phases import phases
from harness.engine.v0_5_12.probe import Probe
from harness.engine.v0_5_12.reset import BootState
from harness.engine.v0_5_12.sink import Sink


class Session:
    """A scheduler, the loop that steps it and the sink that takes its output."""

    def __init__(self, config: EngineConfig, device: str, as_served: bool, copies: bool) -> None:
        """Boot; raises RefusedConfiguration where SGLang refuses the configuration."""
        self.scheduler = boot(config, device, as_served)
        self._sink = Sink(self.scheduler)
        self._loop = EventLoop(self.scheduler)
        self._boot_state = BootState(self.scheduler, copies)
        self._graphs = GraphWatch(self.scheduler)
        self._probe: Probe | None = None

    @property
    def idle(self) -> bool:
        """Whether nothing waits, runs or is in flight (`Scheduler.is_fully_idle`)."""
        return bool(self.scheduler.is_fully_idle())

    def iterate(self, messages: list[Any]) -> None:
        """One iteration of the loop, which receives `messages`."""
        self._loop.iterate(messages)
        if self._probe is not None:
            self._probe.end_iteration()

    def observe(self, probe: Probe | None) -> None:
        """Watch with this probe from now on, with none but the sink if None."""
        if self._probe is not None:
            self._probe.detach()
        self._probe = self._sink.listener = probe
        if probe is not None:
            probe.attach()

    def check(self, probe: Probe, checks: Checks) -> None:
        """Let a probe, before it observes, show what it sees to checks."""
        probe.observer = Observer(self.scheduler, self._graphs, checks, probe.trace)

    def force_retraction(self) -> None:
        """Make the next decode batch retract as if KV memory had run out.

        The path that SGLANG_TEST_RETRACT switches on (`Scheduler.update_running_batch`), for one call of it.
        """
        scheduler = self.scheduler
        module: Any = importlib.import_module(SCHEDULER)

        def once(batch: Any) -> Any:
            del scheduler.update_running_batch
            switches = (module.TEST_RETRACT, module.TEST_RETRACT_INTERVAL)
            module.TEST_RETRACT, module.TEST_RETRACT_INTERVAL = True, 1
            try:
                return scheduler.update_running_batch(batch)
            finally:
                module.TEST_RETRACT, module.TEST_RETRACT_INTERVAL = switches

        scheduler.update_running_batch = once

    @property
    def kv_tokens(self) -> int:
        """The KV pool's size, in tokens."""
        return int(self.scheduler.max_total_num_tokens)

    @property
    def speculating(self) -> bool | None:
        """Whether the last decode step of a toggled engine speculated, or none was yet; None without a toggle."""
        toggled = toggle(self.scheduler)
        return None if toggled is None else toggled.switch.speculating

    @property
    def decoding(self) -> list[int]:
        """Tokens of each request in the running batch."""
        running = self.scheduler.running_batch.reqs
        return [len(request.origin_input_ids) + len(request.output_ids) for request in running]

    def run_own_loop(self, received: Iterable[list[Any]], ended: Ended | None = None) -> None:
        """Run `Scheduler.run_event_loop` itself over these messages, a list an iteration; then a reset is due.

        `ended` is told of each request that ends, while the loop runs.
        """
        self.observe(None)
        self._sink.listener = None if ended is None else Ends(ended)
        self._loop.close()
        run_unattended(self.scheduler, received)

    def phases(self) -> AbstractContextManager[tuple[str, ...]]:
        """Have torch's profiler record the phases of each step, and return their names."""
        return phases(self.scheduler)

    def reset(self) -> None:
        """Back to the state after boot; raises ResetError where something differs."""
        self.observe(None)
        vars(self.scheduler).pop("update_running_batch", None)
        self._loop.close()
        self._boot_state.restore()
        self._loop = EventLoop(self.scheduler)

    def close(self) -> None:
        """Give back memory and process groups, so that another scheduler can boot in this process."""
        self.observe(None)
        self._loop.close()
        del self.scheduler, self._sink, self._boot_state, self._graphs, self._loop
        shut_down()
