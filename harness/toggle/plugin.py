"""The SGLang plugin: entry point group `sglang.srt.plugins`, configured by `SPEC_TOGGLE_...` variables.

`load_plugins` (sglang/srt/plugins) swallows what a plugin raises, so nothing is refused here: the hooks refuse, in
`ServerArgs.check_server_args` before any process starts, and in the worker's constructor.
"""

import os
from functools import cache
from typing import Any

from harness.toggle.drafted import commit_drafted
from harness.toggle.settings import PREFIX, Settings

CHECK = "sglang.srt.server_args.ServerArgs.check_server_args"
CREATE = "sglang.srt.speculative.spec_info.SpeculativeAlgorithm.create_worker"
START_OVERLAP = "sglang.srt.managers.scheduler.Scheduler.init_overlap"
CACHED = "sglang.srt.managers.schedule_batch.Req._cache_commit_len"


def register() -> None:
    """Called by SGLang in each of its processes; does nothing unless a setting is there."""
    if any(name.startswith(PREFIX) for name in os.environ):
        install()


@cache
def install() -> None:
    """Hook the four functions, once a process; the hooks do nothing while no threshold is set.

    The last does nothing to a request whose draft isn't behind.
    """
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    HookRegistry.register(CHECK, refuse_unsupported, HookType.AFTER)
    HookRegistry.register(CREATE, choose_worker, HookType.AFTER)
    HookRegistry.register(START_OVERLAP, adopt_future_map, HookType.AFTER)
    HookRegistry.register(CACHED, commit_drafted, HookType.AFTER)


def refuse_unsupported(_: None, server_args: Any) -> None:
    """After `check_server_args`; raises BadSetting or Unsupported."""
    from harness.toggle.support import refuse_server

    settings = Settings.read()
    if settings is not None:
        refuse_server(server_args, settings.strategy)


def choose_worker(worker: type, _: Any, server_args: Any) -> type:
    """After `create_worker`: the toggled class in place of the stock one it found."""
    if Settings.read() is None:
        return worker
    if server_args.disable_overlap_schedule:
        from harness.toggle.v1 import ToggledEAGLEWorker

        return ToggledEAGLEWorker
    from harness.toggle.v2 import ToggledEAGLEWorkerV2

    return ToggledEAGLEWorkerV2


def adopt_future_map(_: None, scheduler: Any) -> None:
    """After `init_overlap`, when the worker is there: results of plain steps needn't be copied."""
    if Settings.read() is not None:
        from harness.toggle.futures import adopt

        adopt(scheduler)
