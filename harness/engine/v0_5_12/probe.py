"""Watch what passes through a scheduler, and write it down as a trace."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from harness.checks import CheckFailed
from harness.engine.v0_5_12.observer import Observer
from harness.engine.v0_5_12.requests import number_of
from harness.trace import Trace, TraceStep


class Probe:
    """Wraps four calls of one scheduler and fills `trace` from their arguments and results.

    With an `Observer` each of them is shown to the checks as well.
    """

    def __init__(self, scheduler: Any, on_step: Callable[[TraceStep], None] | None = None) -> None:
        self.trace = Trace()
        self.observer: Observer | None = None
        self._scheduler = scheduler
        self._on_step = on_step
        self._reported = 0
        self._launching: TraceStep | None = None
        self._streamed: dict[int, int] = {}
        self._runner = scheduler.tp_worker.model_runner
        self._run_batch, self._process, self._forward = (
            scheduler.run_batch,
            scheduler.process_batch_result,
            self._runner.forward,
        )

    def attach(self) -> None:
        """Start watching."""
        self._scheduler.run_batch = self._watch_run_batch
        self._scheduler.process_batch_result = self._watch_process_batch_result
        self._runner.forward = self._watch_forward
        if self.observer is not None:
            self.observer.attach()

    def detach(self) -> None:
        """Stop watching; the scheduler's methods are its own again."""
        for owner, name in (
            (self._scheduler, "run_batch"),
            (self._scheduler, "process_batch_result"),
            (self._runner, "forward"),
        ):
            vars(owner).pop(name, None)
        if self.observer is not None:
            self.observer.detach()

    def end_iteration(self) -> None:
        """Complete the iteration's row, or add an idle one, and report the rows that are complete."""
        step = self._launching or self._begin("IDLE", ())
        self._launching = None
        scheduler = self._scheduler
        step.kv_free = scheduler.token_to_kv_pool_allocator.available_size() + int(
            scheduler.tree_cache.evictable_size()
        )
        step.waiting = len(scheduler.waiting_queue)
        if self.observer is not None and not step.requests:
            # Outside the loop and its stream: a flush may still be filling what is read here.
            self._scheduler.device_module.synchronize()
            with self._findings_first():
                self.observer.processed(step)
        if self._on_step is not None:
            self._report(self._on_step)

    def token_output(self, output: Any) -> None:
        """A `BatchTokenIDOutput` (managers/io_struct.py) on its way to the detokenizer."""
        requests, streamed = self.trace.requests, self._streamed
        for rid, ids, reason, retractions in zip(
            output.rids, output.output_ids, output.finished_reasons, output.retraction_counts, strict=True
        ):
            number = number_of(rid)
            request = requests[number]
            request.output += ids
            request.retractions = retractions
            if reason is not None:
                request.finish_reason = reason["type"]
            streamed[number] = streamed.get(number, 0) + len(ids)
        if output.output_token_logprobs_val:
            self._logprobs(output)

    def _logprobs(self, output: Any) -> None:
        for row, rid in enumerate(output.rids):
            request = self.trace.requests[number_of(rid)]
            request.logprobs += output.output_token_logprobs_val[row]
            request.top_logprobs += _by_token(output.output_top_logprobs_idx[row], output.output_top_logprobs_val[row])
            request.token_ids_logprobs += _by_token(
                output.output_token_ids_logprobs_idx[row], output.output_token_ids_logprobs_val[row]
            )

    def abort_output(self, rid: str) -> None:
        """An `AbortReq` to the tokenizer: the request ended without having run, or out of memory."""
        self.trace.requests[number_of(rid)].finish_reason = "abort"

    def flush_output(self, granted: bool) -> None:
        """The answer to a flush."""
        self.trace.flushes.append(granted)

    def _begin(self, forward_mode: str, requests: tuple[int, ...]) -> TraceStep:
        step = TraceStep(len(self.trace.steps), forward_mode, requests)
        self.trace.steps.append(step)
        return step

    def _watch_run_batch(self, batch: Any, *args: Any, **kwargs: Any) -> Any:
        step = self._begin(batch.forward_mode.name, tuple([number_of(request.rid) for request in batch.reqs]))
        step.processed = False
        self._launching = step
        if self.observer is not None:
            self.observer.launch(step, batch)
        with self._findings_first():
            result = self._run_batch(batch, *args, **kwargs)
        result.trace_step = step
        return result

    def _watch_forward(self, forward_batch: Any, *args: Any, **kwargs: Any) -> Any:
        step = self._launching
        if step is not None:
            step.forward_mode = forward_batch.forward_mode.name
            step.tokens_in = forward_batch.input_ids.numel()
            if self.observer is not None:
                self.observer.forward(step, forward_batch)
        output = self._forward(forward_batch, *args, **kwargs)
        if step is not None and output.can_run_graph:
            step.padded_size = self._runner.graph_runner.bs
        if step is not None and self.observer is not None:
            self.observer.forwarded(step, forward_batch, output, self._forward)
        return output

    def _watch_process_batch_result(self, batch: Any, result: Any) -> None:
        step: TraceStep = result.trace_step
        self._streamed.clear()
        with self._findings_first():
            self._process(batch, result)
        streamed = self._streamed
        step.tokens_out = tuple([streamed.get(number, 0) for number in step.requests])
        if result.num_correct_drafts_per_req_cpu is not None and step.spec:
            step.accepted = tuple(result.num_correct_drafts_per_req_cpu)
        step.processed = True
        if self.observer is not None:
            with self._findings_first():
                self.observer.processed(step)

    @contextmanager
    def _findings_first(self) -> Iterator[None]:
        """Where the scheduler raises, what a check finds in what was seen before is the better answer."""
        try:
            yield
        except CheckFailed:
            raise
        except Exception:
            if self.observer is not None:
                with suppress(Exception):  # of a faulty device; the scheduler's own error says as much
                    self._scheduler.device_module.synchronize()
                self.observer.later.settle()
            raise

    def _report(self, on_step: Callable[[TraceStep], None]) -> None:
        steps = self.trace.steps
        while self._reported < len(steps) and steps[self._reported].processed:
            on_step(steps[self._reported])
            self._reported += 1


def _by_token(ids: Sequence[Sequence[int]], values: Sequence[Sequence[float]]) -> list[dict[int, float]]:
    """What doesn't pair is left out, for a check to miss."""
    return [dict(zip(*place, strict=False)) for place in zip(ids, values, strict=False)]
