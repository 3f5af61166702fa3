"""I11: a plain stretch costs no acceptance, because the draft's KV cache is what a fresh prefill would write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from harness.checks.base import Check, Findings, Skipped, Violation
from harness.observation import After, DraftCache
from harness.oracle import accepted
from harness.program import Program
from harness.prompts import Prompt
from harness.trace import Trace

if TYPE_CHECKING:
    from torch import Tensor

TOLERANCE = {"float32": 5e-3, "bfloat16": 5e-2, "float16": 1e-2}
"""Largest difference of an entry, relative to the largest entry."""

WITHOUT_DRAFT = "SGLang itself leaves no right draft entry in some of its slots: cases/upstream/draft-*"
MISDRAFTED = "SGLang itself drafted in the wrong slots: cases/upstream/v1-draft-at-page-ends, v1-draft-locs-race"

Acceptance = Mapping[tuple[int, int], int]
"""Draft tokens accepted by a request, by its number and the tokens it had produced."""


def acceptance_of(trace: Trace) -> Acceptance:
    """What each spec step of a trace accepted, but for the last of each request."""
    return {(seen.request, seen.produced): seen.count for seen in trace.accepted()}


class DraftState(Check):
    """Accepted lengths, step by step, and the draft's KV entries.

    `GenerationBatchResult.num_correct_drafts_per_req_cpu` (managers/utils.py) against the closed form of the model
    pair, or against an always-spec run; `MHATokenToKVPool` of the draft (mem_cache/memory_pool.py) against the pair
    computed in torch (fixtures/model_pair), of each request at its first spec step after a prefill or a plain stretch,
    and of whatever the radix cache holds when the scheduler falls idle. Between plain steps the draft may lag (the
    toggle's strategy plain): nothing looks at it there. With graphs SGLang's own draft extend accepts less after a
    spec step (cases/upstream), so that only steps after a prefill or a plain step are compared then.
    """

    name = "I11-draft"

    def __init__(self, program: Program, always_spec: Acceptance | None = None) -> None:
        super().__init__(program)
        prompts = [submit.prompt for submit in program.submits]
        known = program.config.models is None and all(isinstance(prompt, Prompt) for prompt in prompts)
        self._prompts = [prompt for submit in program.submits for prompt in submit.family()] if known else None
        self._open = [submit.open for submit in program.submits for _ in range(submit.count)]
        self._always_spec = always_spec
        self._after_spec: set[int] = set()

    def after_step(self, after: After) -> Findings:
        """Compare what a spec step accepted, of requests that go on."""
        step = after.step
        running = {request.number for request in after.requests if not request.finished}
        for place, (number, count) in enumerate(zip(step.requests, step.tokens_out, strict=True)):
            if step.accepted is None or number not in running or not count:
                continue
            excuse = MISDRAFTED if after.misdrafted else WITHOUT_DRAFT if number in after.without_draft else None
            if excuse is not None and self.excuse_sglang:
                yield Skipped(excuse)
            else:
                yield from self._compare(number, len(after.streamed[number]) - count, step.accepted[place])
        if step.spec:
            self._after_spec |= set(step.requests)
        else:
            self._after_spec -= set(step.requests)

    def _compare(self, number: int, produced: int, seen: int) -> Findings:
        if self._open[number]:
            yield Skipped("no accepted length is known of a sampled or penalised request")
        elif self.config.graphs and number in self._after_spec and self.excuse_sglang:
            yield Skipped(
                "after a spec step with graphs SGLang accepts less of itself: cases/upstream/*-draft-extend-graph"
            )
        elif (expected := self._expected(number, produced)) is not None:
            self.answered += 1
            if seen != expected:
                yield Violation(f"draft tokens accepted after {produced} tokens", expected, seen, number)
        else:
            yield Skipped("no accepted length is known: another model pair, and no always-spec run that stopped here")

    def _expected(self, number: int, produced: int) -> int | None:
        if self._prompts is not None:
            return accepted(self._prompts[number], produced, self.config.steps)
        return None if self._always_spec is None else self._always_spec.get((number, produced))

    def draft_caches(self, caches: list[DraftCache]) -> Findings:
        """Compare every entry with a fresh prefill's."""
        if self.config.models is not None:
            yield Skipped("another model pair: its draft isn't known in torch")
            return
        from harness.checks.fresh import differences  # by now an engine has imported torch, see harness/observation.py

        for cache, (keys, values) in zip(caches, differences(caches), strict=True):
            yield from self._entries(cache, "key", keys)
            yield from self._entries(cache, "value", values)

    def _entries(self, cache: DraftCache, name: str, off: Tensor) -> Findings:
        """How far each position's entry is `off`, as a share of the largest entry there is."""
        if self.excuse_sglang:
            off[list(cache.excepted)] = 0
        bad = (~(off <= TOLERANCE[self.config.dtype])).nonzero().flatten().tolist()  # what is no number is bad, too
        if bad:
            whose = "draft KV" if cache.request is not None else "draft KV in the radix cache"
            what = f"{whose}, {name} entries of positions {_ranges(bad)} of {len(off)},"
            seen_as = f"up to {float(off.max()):.2g} of the largest off"
            yield Violation(what, "as a fresh prefill's", seen_as, cache.request)


def _ranges(places: list[int]) -> str:
    return f"{places[0]} to {places[-1]}" if len(places) > 1 else str(places[0])
