"""Start and end a scheduler in this process."""

import gc
import importlib
import logging
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from io import StringIO
from pathlib import Path
from typing import Any

import torch

from harness.configuration import EngineConfig
from harness.engine.v0_5_12.models import import_models
from harness.errors import RefusedConfiguration
from harness.models import models_of
from harness.patches.stack import UNCHANGED, is_plugin, sources, worker
from harness.patches.workers import worker_of

CHUNKING_OFF = -1
FREE_MEMORY_SHARE = 0.9
"""Of the memory that is free when an engine starts, for its models and KV pool. Only a bound, since `kv_tokens` says
how large the pool is; wide, so that several engines fit on one GPU, the last of them into what the others left."""
SCHEDULER = "sglang.srt.managers.scheduler"
_contexts: list[Any] = []
"""ZeroMQ's, of schedulers that have been started and not shut down."""


def boot(config: EngineConfig, device: str, as_served: bool) -> Any:
    """A real `Scheduler` (managers/scheduler.py), idle, with its loop not yet entered.

    Unless `as_served`, a boot leaves out the garbage collections that SGLang makes around its captures. Raises
    RefusedConfiguration with SGLang's own reason where it refuses the combination.
    """
    with _quiet():
        server_args = importlib.import_module("sglang.srt.server_args")
        scheduler_module: Any = importlib.import_module(SCHEDULER)
        import_models(config)
    # Its thread would keep a closed scheduler's memory alive, and kill a process that pauses between steps.
    scheduler_module.create_scheduler_watchdog = lambda *_, **__: None
    scheduler_module.get_zmq_socket = _socket
    with _toggled(config):
        try:
            with _quiet():
                scheduler_module.load_plugins()
                args = server_args.ServerArgs(**server_arguments(config, device))
                _set_threshold(args, config)
                args.check_server_args()
        except (ValueError, AssertionError, NotImplementedError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise RefusedConfiguration(f"SGLang refuses this configuration: {reason}") from error
        try:
            with _quiet(), _float32_operators(config, device), _collections(args, as_served):
                ports = server_args.PortArgs.init_new(args)
                _remove_socket_files(ports)
                server_args.set_global_server_args_for_scheduler(args)
                scheduler = scheduler_module.Scheduler(args, ports, *[0] * 6, None)
        except BaseException:
            shut_down()
            raise
    _check_installed(config, scheduler)
    return scheduler


def server_arguments(config: EngineConfig, device: str) -> dict[str, Any]:
    """Keyword arguments of `ServerArgs` (server_args.py) for a configuration."""
    models = models_of(config)
    arguments: dict[str, Any] = {
        "model_path": str(models.target),
        "skip_tokenizer_init": True,
        "device": device,
        "dtype": config.dtype,
        "attention_backend": config.attention_backend,
        "sampling_backend": "pytorch",
        "page_size": config.page_size,
        "max_running_requests": config.max_running_requests,
        "max_total_tokens": config.kv_tokens,
        "context_length": config.context_length,
        "chunked_prefill_size": config.chunked_prefill_size or CHUNKING_OFF,
        "disable_radix_cache": not config.radix_cache,
        "disable_overlap_schedule": not config.overlap,
        "disable_cuda_graph": not config.graphs,
        "cuda_graph_bs": list(config.graphs) or None,
        "disable_piecewise_cuda_graph": True,
        "mem_fraction_static": FREE_MEMORY_SHARE,
        "random_seed": config.random_seed,
        "load_format": "dummy" if models.dummy_weights else "auto",
        "log_level": "error",
    }
    if config.speculative:
        arguments |= {
            "speculative_algorithm": "EAGLE3",
            "speculative_draft_model_path": str(models.draft),
            "speculative_num_steps": config.steps,
            "speculative_eagle_topk": config.topk,
            "speculative_num_draft_tokens": config.verified_tokens,
        }
    return arguments


def shut_down() -> None:
    """Forget process groups and pools that SGLang keeps per process, so that another scheduler can boot."""
    parallel = importlib.import_module("sglang.srt.distributed.parallel_state")
    parallel.destroy_model_parallel()
    parallel.destroy_distributed_environment()
    importlib.import_module("sglang.srt.model_executor.cuda_graph_runner").set_global_graph_memory_pool(None)
    importlib.import_module("sglang.srt.model_executor.input_buffers")._forward_input_buffer_pool.clear()
    while _contexts:
        _contexts.pop().destroy(linger=0)
    gc.collect()
    torch.cuda.empty_cache()


def _socket(context: Any, *given: Any) -> Any:
    """A socket of `Scheduler.init_ipc_channels`, whose context is kept until it can be ended together with its sockets.

    The garbage collector may come upon the context first, and then waits for ever for sockets to be closed that it
    would close next.
    """
    if context not in _contexts:
        _contexts.append(context)
    return importlib.import_module("sglang.srt.utils.network").get_zmq_socket(context, *given)


def _remove_socket_files(ports: Any) -> None:
    """Remove the temporary files that name the sockets to other processes: nobody listens there."""
    for address in vars(ports).values():
        if isinstance(address, str) and address.startswith("ipc://"):
            Path(address.removeprefix("ipc://")).unlink(missing_ok=True)


@contextmanager
def _toggled(config: EngineConfig) -> Iterator[None]:
    """Set the toggle's variables while a scheduler starts, as a person would for a server; no others' are left."""
    wanted = toggle_environment(config)
    toggle = importlib.import_module("harness.toggle.settings")
    own = [name for name in os.environ if name.startswith(toggle.PREFIX) or config.threshold_setting == f"env:{name}"]
    before = {name: os.environ.pop(name) for name in own}
    os.environ.update(wanted)
    try:
        if toggle.THRESHOLD in wanted:
            importlib.import_module("harness.toggle.plugin").register()
        if wanted or sources(config.patch):
            # SGLang loads plugins once a process; an engine without a toggle may have been the first.
            importlib.import_module("sglang.srt.plugins.hook_registry").HookRegistry.apply_hooks()
        with _patched(config):
            yield
    finally:
        for name in wanted:
            del os.environ[name]
        os.environ.update(before)


@contextmanager
def _patched(config: EngineConfig) -> Iterator[None]:
    """Let the configuration's patch choose the worker class while a scheduler starts."""
    patched = worker(config.patch)
    if patched is None or patched == UNCHANGED:
        yield
        return
    algorithm = importlib.import_module("sglang.srt.speculative.spec_info").SpeculativeAlgorithm
    patch, create_worker = worker_of(patched), algorithm.create_worker
    algorithm.create_worker = lambda self, server_args: patch(create_worker(self, server_args))
    try:
        yield
    finally:
        algorithm.create_worker = create_worker


def toggle_environment(config: EngineConfig) -> dict[str, str]:
    """The variables that configure the plugin, or a patch of SGLang, as `config.toggle` says; none without a toggle."""
    if config.toggle is None:
        return {}
    toggle = config.toggle
    if worker(config.patch) is None:
        kind, _, name = config.threshold_setting.partition(":")
        return {name: str(toggle.threshold)} if kind == "env" else {}
    policy = importlib.import_module("harness.toggle.policy").Policy(toggle.threshold, toggle.hysteresis)
    settings = importlib.import_module("harness.toggle.settings")
    kept = settings.KEPT_TOKENS if toggle.kept_tokens is None else toggle.kept_tokens
    environment: dict[str, str] = settings.Settings(policy, toggle.strategy, kept).environment()
    return environment


def _set_threshold(args: Any, config: EngineConfig) -> None:
    """Give the threshold to a patch of SGLang that has an argument for it."""
    kind, _, name = config.threshold_setting.partition(":")
    if kind == "env" or config.toggle is None or worker(config.patch) is not None:
        return
    if not hasattr(args, name):
        raise RefusedConfiguration(f"ServerArgs has no {name}: the patch must add it, or take the threshold otherwise")
    setattr(args, name, config.toggle.threshold)


def _check_installed(config: EngineConfig, scheduler: Any) -> None:
    """SGLang swallows a plugin's errors: make sure that what is asked for is there, and the toggle nowhere else."""
    if any(is_plugin(entry) for entry in sources(config.patch)):
        registry = importlib.import_module("sglang.srt.plugins.hook_registry").HookRegistry
        inert = sorted({*registry._hooks} - registry._patched)
        if inert:
            raise RuntimeError(
                f"hooks of a plugin weren't applied, to {', '.join(inert)}: does SGLang have these names?"
            )
    if worker(config.patch) != UNCHANGED:
        return
    if hasattr(scheduler.draft_worker, "toggle") != (config.toggle is not None):
        raise RuntimeError(f"the toggle isn't installed as configured: the worker is {type(scheduler.draft_worker)}")


@contextmanager
def _float32_operators(config: EngineConfig, device: str) -> Iterator[None]:
    """Let norms, activations and rotary embeddings be torch's on a GPU in float32, for which sgl_kernel has none.

    What `MultiPlatformOp.dispatch_forward` (layers/utils/multi_platform.py) does on a device without kernels.
    """
    if config.dtype != "float32" or device != "cuda":
        yield
        return
    operator = importlib.import_module("sglang.srt.layers.utils.multi_platform").MultiPlatformOp
    dispatch = operator.dispatch_forward
    operator.dispatch_forward = lambda self: self.forward_native
    try:
        yield
    finally:
        operator.dispatch_forward = dispatch


@contextmanager
def _collections(args: Any, as_served: bool) -> Iterator[None]:
    """Spare the garbage collections around captures (`freeze_gc`, model_executor/cuda_graph_runner.py).

    Each looks at all of SGLang and torch, 0.6 s on a slow core, seven times a boot. None must run within a capture, so
    that none runs at all until the end.
    """
    if as_served:
        yield
        return
    args.enable_cudagraph_gc = True  # else it would undo the freeze
    enabled, frozen_before = gc.isenabled(), gc.get_freeze_count()
    gc.disable()
    gc.freeze()
    try:
        yield
    finally:
        if not frozen_before:
            gc.unfreeze()
        if enabled:
            gc.enable()


@contextmanager
def _quiet() -> Iterator[None]:
    """Without progress bars for each file and graph, warnings of hardware that isn't there, and the like.

    torch.distributed's excepthook goes too: it prefixes uncaught errors with the rank, once more at each boot.
    """
    logging.getLogger("sglang").setLevel(logging.ERROR)
    logging.getLogger("transformers").setLevel(logging.ERROR)
    hook = sys.excepthook
    try:
        with warnings.catch_warnings(action="ignore"), redirect_stderr(StringIO()):
            yield
    finally:
        sys.excepthook = hook
