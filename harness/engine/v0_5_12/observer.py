"""Show a scheduler of this release to the checks, as the plain data of `harness.observation`."""

import os
from collections import Counter
from copy import copy
from functools import partial
from typing import Any

import torch

from harness.checks import CheckFailed, Checks
from harness.engine.v0_5_12.buffers import model_runners
from harness.engine.v0_5_12.draft_caches import draft_cache, radix_caches
from harness.engine.v0_5_12.excuses import Excuses
from harness.engine.v0_5_12.graph_watch import GraphWatch
from harness.engine.v0_5_12.later import Later, copied
from harness.engine.v0_5_12.requests import number_of
from harness.observation import After, Compared, Forward, Launch, Memory, Replay, Request
from harness.trace import Trace, TraceStep

SUMS_EACH_STEP = "SGLANG_ENABLE_STRICT_MEM_CHECK_DURING_BUSY"
"""`self_check_during_busy` (managers/scheduler_runtime_checker_mixin.py)."""
INPUTS = ("input_ids", "out_cache_loc", "positions")
SPEC_FIELDS = ("topk_p", "topk_index", "hidden_states", "bonus_tokens")


class Observer:
    """Hands each moment of one run to its checks."""

    def __init__(self, scheduler: Any, graphs: GraphWatch, checks: Checks, trace: Trace) -> None:
        self._scheduler, self._graphs, self._checks, self._trace = scheduler, graphs, checks, trace
        self._in_flight: dict[int, int] = {}
        self._prefilling: Counter[int] = Counter()
        """By request, the prefills in flight: with overlap a next chunk is launched before one is processed."""
        self._drafted_from_spec: set[int] = set()
        self._compared: set[tuple[str, int]] = set()
        self._last_mode = ""
        self._excuses = Excuses(scheduler, trace)
        self._read: dict[int, list[int]] = {}
        self._step: TraceStep | None = None
        self._launched: list[Any] = []
        """The requests of the batch that was launched last."""
        self.later = Later()
        """Seen at a step, and not yet looked at."""
        self._idle = True

    def attach(self) -> None:
        """Watch graphs, too, and let SGLang check its sums at every step.

        Its other strict checks are on anyway; this one it can't do with topk > 1.
        """
        self._graphs.attach(self._saw_replay)
        self._excuses.attach()
        if (self._scheduler.server_args.speculative_eagle_topk or 1) == 1:
            os.environ[SUMS_EACH_STEP] = "1"

    def detach(self) -> None:
        """Watch no more."""
        self._graphs.detach()
        os.environ.pop(SUMS_EACH_STEP, None)
        self._excuses.detach()

    def launch(self, step: TraceStep, batch: Any) -> None:
        """A batch on its way to the worker."""
        self._step, self._launched = step, list(batch.reqs)
        if not batch.forward_mode.is_decode():
            self._prefilling.update(step.requests)
            self._drafted_from_spec -= set(step.requests)
            return
        for number in step.requests:
            self._in_flight[number] = self._in_flight.get(number, 0) + 1
        spec_info = batch.spec_info
        launch = Launch(
            step=step,
            requests=[self._request(request) for request in batch.reqs],
            speculative=not batch.spec_algorithm.is_none(),
            seq_lens=copied(batch.seq_lens),
            seq_lens_cpu=copied(batch.seq_lens_cpu),
            spec_rows=None if spec_info is None else _rows(spec_info),
            bonus_tokens=None if spec_info is None or batch.enable_overlap else copied(spec_info.bonus_tokens),
        )
        self.later.add(step.index, launch, partial(self._checks.at_launch, launch))

    def forward(self, step: TraceStep, batch: Any) -> None:
        """A forward of the target is about to run."""
        mode = batch.forward_mode.name
        requests = [request for request in self._launched if request.req_pool_idx is not None]
        each = {"DECODE": 1, "TARGET_VERIFY": getattr(batch.spec_info, "draft_token_num", None)}.get(mode)
        inputs = {name: _flat(getattr(batch, name)) for name in INPUTS}
        forward = Forward(
            step=step,
            mode=mode,
            requests=step.requests,
            counts={name: len(values) for name, values in inputs.items()},
            tokens_each=each,
            seq_lens=batch.seq_lens,
            seq_lens_cpu=batch.seq_lens_cpu,
            seq_lens_sum=batch.seq_lens_sum,
            input_ids=inputs["input_ids"],
            out_cache_loc=inputs["out_cache_loc"],
            rows=batch.req_pool_indices,
            table=self._scheduler.req_to_token_pool.req_to_token,
            allocated=tuple([request.kv_allocated_len for request in requests]),
            last_row=max([request.req_pool_idx for request in requests], default=0),
        )
        self.later.add(step.index, forward, partial(self._look_at_forward, step, batch, requests, forward))
        self.later.begin()

    def forwarded(self, step: TraceStep, batch: Any, output: Any, forward: Any) -> None:
        """A forward of the target has been launched."""
        self.later.finish()
        if output.can_run_graph:
            self._compare(step, batch, output, forward)

    def _look_at_forward(self, step: TraceStep, batch: Any, requests: list[Any], forward: Forward) -> None:
        self._checks.at_forward(forward)
        if forward.mode == "DECODE":
            self._read[step.index] = forward.values("input_ids")
            self._drafted_from_spec -= set(step.requests)
        self._excuses.forward(step, batch, forward)
        if forward.mode == "TARGET_VERIFY":
            self._look_at_draft(step, requests, forward)

    def _compare(self, step: TraceStep, batch: Any, output: Any, forward: Any) -> None:
        """Run a forward again eagerly, once for each graph and after each switch."""
        kind, switched = (step.forward_mode, step.padded_size or 0), step.forward_mode != self._last_mode
        self._last_mode = step.forward_mode
        if kind in self._compared and not switched:
            return
        self.later.settle()
        self._compared.add(kind)
        replayed = output.logits_output.next_token_logits.clone()
        runner = model_runners(self._scheduler)[0]
        graphs, runner.graph_runner = runner.graph_runner, None
        try:
            eager = forward(copy(batch)).logits_output.next_token_logits
        finally:
            runner.graph_runner = graphs
        self._checks.compared(step.index, Compared(step.forward_mode, step.batch_size, replayed, eager))
        output.logits_output.next_token_logits.copy_(replayed)

    def processed(self, step: TraceStep) -> None:
        """A step's result has been processed, or there was nothing to do."""
        if step.spec or step.plain:
            for number in step.requests:
                self._in_flight[number] -= 1
        else:
            self._prefilling.subtract(step.requests)
        self._excuses.processed()
        holding = self._holding_rows()
        requests = [self._request(request) for request in holding]
        read = self._read.pop(step.index, ())
        traced = {number: self._trace.requests[number] for number in step.requests}
        was_idle, self._idle = self._idle, bool(self._scheduler.is_fully_idle()) and not requests
        after = After(
            step=step,
            requests=requests,
            memory=self._memory(),
            idle=self._idle,
            streamed={number: request.output for number, request in traced.items()},
            logprobs={number: request.logprobs for number, request in traced.items()},
            top_logprobs={number: request.top_logprobs for number, request in traced.items()},
            retracted={number for number, request in traced.items() if request.retractions},
            read=dict(zip(step.requests, read, strict=False)),
            ended={number: request.finish_reason for number, request in traced.items() if request.finish_reason},
            without_draft=self._excuses.requests_without_draft(step, holding),
            misdrafted=self._excuses.misdrafted(step),
        )
        self.later.add(step.index, after, partial(self._checks.after_step, after))
        self.later.settle(until=step.index)
        if self._idle and not was_idle and (cached := radix_caches(self._scheduler, self._excuses.without_draft)):
            self._checks.draft_caches(step.index, cached)

    def _saw_replay(self, replay: Replay) -> None:
        if self._step is None:
            return
        look = partial(self._checks.at_replay, self._step.index, replay)
        if replay.padded_slots is not None:
            self.later.add(self._step.index, replay, look)
            return
        try:
            look()
        except CheckFailed:
            self.later.settle()  # what was seen before is to be found first
            raise

    def _holding_rows(self) -> list[Any]:
        scheduler = self._scheduler
        batches = (scheduler.running_batch, scheduler.cur_batch, scheduler.last_batch)
        found = {id(request): request for batch in batches if batch is not None for request in batch.reqs}
        if scheduler.chunked_req is not None:
            found[id(scheduler.chunked_req)] = scheduler.chunked_req
        return [request for request in found.values() if request.req_pool_idx is not None]

    def _request(self, request: Any) -> Request:
        number = number_of(request.rid)
        return Request(
            number=number,
            row=request.req_pool_idx,
            prompt=len(request.origin_input_ids),
            output=request.output_ids,
            committed=request.kv_committed_len,
            allocated=request.kv_allocated_len,
            protected=request.cache_protected_len,
            in_flight=self._in_flight.get(number, 0),
            finished=request.finished(),
            retractions=request.retraction_count,
            prefilled=not self._prefilling[number] and request.is_chunked == 0 and bool(request.output_ids),
        )

    def _memory(self) -> Memory:
        scheduler = self._scheduler
        allocator, tree, rows = (
            scheduler.token_to_kv_pool_allocator,
            scheduler.tree_cache,
            scheduler.req_to_token_pool,
        )
        page = allocator.page_size
        # What a group of frees held stays in the list after the group has ended.
        group = [] if allocator.is_not_in_free_group else allocator.free_group
        free = [pages for pages in (allocator.free_pages, allocator.release_pages, *group) if len(pages)]
        cached = allocator.free_pages[:0]
        if not tree.is_chunk_cache() and tree.root_node.children:
            cached = tree.all_values_flatten()[::page] // page if page > 1 else tree.all_values_flatten()
        return Memory(
            pages=allocator.size // page,
            page_size=page,
            free=free[0] if len(free) == 1 else torch.cat(free or [allocator.free_pages]),
            cached=cached,
            table=rows.req_to_token,
            free_rows=rows.free_slots,
            rows=rows.size,
            locked_tokens=int(tree.protected_size()),
        )

    def _look_at_draft(self, step: TraceStep, requests: list[Any], forward: Forward) -> None:
        """Show the draft's KV where a request drafts after a prefill or a plain step."""
        runners = model_runners(self._scheduler)
        fresh = [request for request in requests if number_of(request.rid) not in self._drafted_from_spec]
        if step.spec:
            self._drafted_from_spec |= set(step.requests)
        if len(runners) < 2 or not fresh or not step.spec:
            return
        lengths = dict(zip(step.requests, forward.values("seq_lens"), strict=True))
        caches = []
        for request in fresh:
            number, tokens = number_of(request.rid), [*request.origin_input_ids, *request.output_ids]
            known = min(lengths[number], len(tokens) - 1)
            slots = self._scheduler.req_to_token_pool.req_to_token[request.req_pool_idx, :known].long()
            caches.append(draft_cache(self._scheduler, self._excuses.without_draft, number, tokens, slots))
        self._checks.draft_caches(step.index, caches)


def _flat(tensor: torch.Tensor | None) -> torch.Tensor:
    """What a patch left where one dimension is due: nothing, or a number."""
    return torch.empty(0, dtype=torch.int64) if tensor is None else tensor.reshape(-1)


def _rows(spec_info: Any) -> dict[str, int]:
    if spec_info.future_indices is not None:
        return {"future_indices": len(spec_info.future_indices.indices)}
    fields = {name: getattr(spec_info, name) for name in SPEC_FIELDS}
    return {name: len(value) for name, value in fields.items() if value is not None}
