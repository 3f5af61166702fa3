"""What SGLang itself gets wrong in the draft's KV cache, so that no patch is blamed for it: cases/upstream."""

from typing import Any

from harness.engine.v0_5_12.draft_locs import DraftLocs
from harness.engine.v0_5_12.requests import number_of
from harness.fetched import on_host
from harness.observation import Forward
from harness.trace import Trace, TraceStep


class Excuses:
    """Follows one run: the slots without a right draft entry, who holds them, and steps drafted in the wrong slots."""

    def __init__(self, scheduler: Any, trace: Trace) -> None:
        self._scheduler, self._trace = scheduler, trace
        self.without_draft: set[int] = set()
        """Slots in which SGLang itself leaves no draft entry, or a wrong one."""
        self._lacking: dict[tuple[int, int], bool] = {}
        """By request and its retractions: whether it got such slots from the radix cache, or at a chunk's end, or has
        had one of its own written to since."""
        self._verified: dict[int, list[int]] = {}
        self._misdrafted: set[int] = set()
        """Steps."""
        self._draft_locs = DraftLocs(scheduler)

    def attach(self) -> None:
        """Watch what slots a draft gets."""
        self._draft_locs.attach()

    def detach(self) -> None:
        """Watch no more."""
        self._draft_locs.detach()

    def forward(self, step: TraceStep, batch: Any, forward: Forward) -> None:
        """A forward of the target: which slots are to be kept.

        The last of a chunk that isn't a prompt's last, made of a token that was only predicted; in v1 those of the run
        that ends a request, which no draft extend follows.
        """
        misdrafted, slots_written = self._draft_locs.wrong()
        if misdrafted:
            self._misdrafted.add(step.index)
        if slots_written:  # whoever holds one lacks it from now on
            self.without_draft |= slots_written
            self._lacking = {prefill: True for prefill, lacking in self._lacking.items() if lacking}
        chunked = self._scheduler.chunked_req
        chunk_ends = chunked is not None and number_of(chunked.rid) in step.requests
        verified = batch.forward_mode.is_target_verify() and not self._scheduler.enable_overlap
        self._verified.clear()
        if not (chunk_ends or verified or self.without_draft):
            return
        slots = forward.values("out_cache_loc")
        self.without_draft -= set(slots)
        if chunk_ends and batch.extend_seq_lens_cpu is not None:
            place = step.requests.index(number_of(chunked.rid))
            self.without_draft.add(slots[sum(batch.extend_seq_lens_cpu[: place + 1]) - 1])
        if verified:
            each = len(slots) // len(step.requests)
            self._verified = {n: slots[i * each : (i + 1) * each] for i, n in enumerate(step.requests)}

    def processed(self) -> None:
        """The result of the last forward has been processed, or there was nothing to do."""
        for number, slots in self._verified.items():
            if self._trace.requests[number].finish_reason is not None:
                self.without_draft |= set(slots)
        self._verified.clear()

    def misdrafted(self, step: TraceStep) -> bool:
        """Whether it drafted in the wrong slots."""
        return step.index in self._misdrafted

    def requests_without_draft(self, step: TraceStep, holding: list[Any]) -> set[int]:
        """Of a spec step's requests, those that hold such slots: from a prefill, so that one look at each is enough,
        and another whenever slots were written to that weren't to be."""
        if step.accepted is None:
            return set()
        decoding = {number: request for request in holding if (number := number_of(request.rid)) in step.requests}
        prefills = {number: (number, request.retraction_count) for number, request in decoding.items()}
        new = {number: request for number, request in decoding.items() if prefills[number] not in self._lacking}
        table = self._scheduler.req_to_token_pool.req_to_token
        looked_at = new if self.without_draft else {}
        slots = on_host(*(table[one.req_pool_idx, : one.kv_committed_len] for one in looked_at.values()))
        self._lacking |= dict.fromkeys((prefills[number] for number in new), False)
        for number, mine in zip(looked_at, slots, strict=True):
            self._lacking[prefills[number]] = not self.without_draft.isdisjoint(mine)
        return {number for number, prefill in prefills.items() if self._lacking[prefill]}
