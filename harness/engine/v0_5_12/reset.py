"""Bring a scheduler back to the state it had after boot, and prove it."""

import importlib
from collections import deque
from typing import Any

import torch

from harness.engine.errors import ResetError
from harness.engine.v0_5_12.boot import SCHEDULER
from harness.engine.v0_5_12.buffers import attention_backends, model_runners, persistent_buffers, toggle


class BootState:
    """What a scheduler looked like right after boot; taken once, restored between programs."""

    def __init__(self, scheduler: Any, copies: bool) -> None:
        """Without `copies`, inputs and outputs of captured graphs stay as a program leaves them, as in a server."""
        self._scheduler = scheduler
        _clear_memory(scheduler)
        self._buffers = [(buffer, buffer.clone()) for buffer in persistent_buffers(scheduler)] if copies else []
        self._metadata = [
            (backend, backend.forward_metadata)
            for backend in attention_backends(scheduler)
            if hasattr(backend, "forward_metadata")
        ]
        self._facts = _facts(scheduler)

    def restore(self) -> None:
        """Drop all requests and clear pools, caches and queues; raises ResetError where a fact differs from boot.

        Memory contents are restored too (KV pools and request table zeroed; inputs and outputs of captured graphs and
        metadata of attention backends as at boot): what an earlier program left behind must not decide how the next
        one fails.
        """
        _drop_requests(self._scheduler)
        _clear_memory(self._scheduler)
        for buffer, content in self._buffers:
            buffer.copy_(content)
        for backend, metadata in self._metadata:
            backend.forward_metadata = metadata
        importlib.import_module("sglang.srt.utils").set_random_seed(self._scheduler.random_seed)
        facts = _facts(self._scheduler)
        differing = [
            f"{name} is {facts[name]}, was {at_boot}" for name, at_boot in self._facts.items() if facts[name] != at_boot
        ]
        if differing:
            raise ResetError("the engine isn't as after boot: " + "; ".join(differing))


def _drop_requests(scheduler: Any) -> None:
    batch = importlib.import_module(SCHEDULER).ScheduleBatch
    scheduler.waiting_queue.clear()
    scheduler.running_batch = batch(reqs=[], batch_is_full=False)
    scheduler.cur_batch = scheduler.last_batch = scheduler.chunked_req = None
    scheduler._chunked_req_scheduled_last_iter = False
    for of_last_prefill in ("adder", "can_run_list"):
        vars(scheduler).pop(of_last_prefill, None)
    scheduler._pending_flush = None
    scheduler._engine_paused = False
    toggled = toggle(scheduler)
    if toggled is not None:
        toggled.switch.reset()
    scheduler.forward_ct = 0
    scheduler.num_retracted_reqs = 0
    scheduler.new_token_ratio = scheduler.init_new_token_ratio
    if scheduler.enable_overlap:
        scheduler.result_queue = deque()
        scheduler.batch_record_buf = [None] * 2
        scheduler.batch_record_ct = 0
        _forget_futures(scheduler.future_map)


def _forget_futures(future_map: Any) -> None:
    """`FutureMap` (managers/overlap_utils.py): results in flight, in buffers that V2 makes with its first result.

    A toggled V2's (harness/toggle/futures.py) keeps the last plain step's beside them.
    """
    future_map.future_ct = 0
    if hasattr(future_map, "forget"):
        future_map.forget()
    for value in vars(future_map).values():
        if isinstance(value, torch.Tensor):
            value.zero_()


def _clear_memory(scheduler: Any) -> None:
    scheduler.device_module.synchronize()
    if not scheduler.flush_cache(empty_cache=False):
        raise ResetError("SGLang refuses to flush its caches: requests are pending")
    scheduler.req_to_token_pool.req_to_token.zero_()
    for runner in model_runners(scheduler):
        pool = runner.token_to_kv_pool
        for buffer in (*pool.k_buffer, *pool.v_buffer):
            buffer.zero_()


def _facts(scheduler: Any) -> dict[str, Any]:
    allocator, tree, rows = (
        scheduler.token_to_kv_pool_allocator,
        scheduler.tree_cache,
        scheduler.req_to_token_pool,
    )
    free = allocator.free_pages
    cached = None if tree.is_chunk_cache() else tree.total_size()
    return {
        "free pages": (free.numel(), bool((free == torch.arange(1, free.numel() + 1, device=free.device)).all())),
        "pages to release": (
            allocator.release_pages.numel(),
            len(allocator.free_group),
            allocator.is_not_in_free_group,
        ),
        "free request rows": list(rows.free_slots),
        "request table entries set": int(rows.req_to_token.count_nonzero()),
        "cached tokens": (tree.evictable_size(), tree.protected_size(), cached),
        "waiting requests": len(scheduler.waiting_queue),
        "running requests": len(scheduler.running_batch.reqs),
        "grammar queue": len(scheduler.grammar_manager.grammar_queue),
        "results in flight": len(getattr(scheduler, "result_queue", ())),
        "batches": (scheduler.cur_batch, scheduler.last_batch, scheduler.chunked_req),
        "new token ratio": scheduler.new_token_ratio,
        "fully idle": scheduler.is_fully_idle(),
    }
