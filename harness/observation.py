"""What checks look at: a scheduler at one moment, as plain data and tensors, free of any release's names.

Tensors are the scheduler's own, on its device: a check reads them and never writes. What several checks compare on the
host is fetched together (`values`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness.fetched import Copy, Fetched
from harness.trace import TraceStep

if TYPE_CHECKING:  # torch takes seconds to import, and a command line that is refused needs none
    from torch import Tensor

    from harness.fetched import Values

LITTLE = 16384
"""Entries of a table that are copied to the host sooner than a part of them is cut out."""


@dataclass(slots=True)
class Forward(Fetched):
    """A forward of the target, about to run."""

    TOGETHER = ("seq_lens", "out_cache_loc", "input_ids", "rows", "near")
    step: TraceStep
    mode: str
    """DECODE, TARGET_VERIFY or EXTEND."""
    requests: tuple[int, ...]
    counts: dict[str, int]
    """Lengths of `input_ids`, `out_cache_loc` and `positions`."""
    tokens_each: int | None
    """Tokens of each request, where all have the same: 1 in DECODE, the tree's nodes in TARGET_VERIFY."""
    seq_lens: Tensor
    """(batch size,) int: tokens of each request in the KV cache; in DECODE the new one counts already."""
    seq_lens_cpu: Tensor | None
    seq_lens_sum: int | None
    input_ids: Tensor
    """(tokens,) int: the tokens that it reads."""
    out_cache_loc: Tensor
    """(tokens,) int: the KV slot that each token's entry is written to."""
    rows: Tensor
    """(batch size,) int: each request's row of `table`."""
    table: Tensor
    """(rows, context) int32: the KV slot of each position of each request."""
    allocated: tuple[int, ...]
    """Positions of each request that it owns slots for."""
    last_row: int
    """The last row of `table` that one of the requests has."""

    @property
    def first(self) -> int:
        """The position of the first new token of each request, from `seq_lens` on."""
        return -1 if self.mode == "DECODE" else 0

    @property
    def near(self) -> Tensor | None:
        """The part of `table` in which the requests' slots are, those of a tree that v1 verifies beyond what they own.

        None where it says nothing about the inputs.
        """
        size, each = len(self.requests), self.tokens_each
        if each is None or len(self.out_cache_loc) != size * each or not len(self.rows) == len(self.seq_lens) == size:
            return None
        return _corner(self.table, self.last_row + 1, max(self.allocated, default=0) + each)

    def own_slots(self) -> list[list[int]] | None:
        """The slots that the table has for the new tokens of each request; None where the inputs' lengths don't fit."""
        near, each = self.array("near"), self.tokens_each
        if not len(near) or each is None:
            return None
        slots = _by_row(near, self.table, self.last_row + 1)
        height, width = slots.shape
        firsts = [length + self.first for length in self.values("seq_lens")]
        places = list(zip(self.values("rows"), firsts, strict=True))
        if not all(0 <= row < height and 0 <= first <= width - each for row, first in places):
            slots = _by_row(Copy(self.table).values(0), self.table, len(self.table))  # where no request has slots
        return [slots[row, first : first + each].tolist() for row, first in places]


def _corner(table: Tensor, rows: int, columns: int) -> Tensor:
    """The first rows as far as to a column; or as a whole where that is little, since only so they need no launch."""
    whole = table[:rows]
    return whole if whole.numel() <= LITTLE else whole[:, :columns]


def _by_row(values: Values, table: Tensor, rows: int) -> Values:
    """The values of a corner of `table`."""
    return values.reshape(min(rows, len(table)), -1)


@dataclass(slots=True)
class Replay(Fetched):
    """A captured graph that is about to be replayed, its inputs prepared."""

    TOGETHER = ("padded_slots", "padded_lengths")
    model: str
    """target, draft or draft extend."""
    captured_mode: str
    mode: str
    captured_size: int
    """Batch size of the chosen graph, in requests."""
    batch_size: int
    tokens: int
    """Tokens of the batch."""
    tokens_each: int
    """Tokens of a request that were captured."""
    ragged: bool = False
    """Whether the captured kernels take requests of fewer tokens, too."""
    padded_slots: Tensor | None = None
    """KV slots that padded rows write to; None where there are no such rows, or before they are prepared."""
    padded_lengths: Tensor | None = None
    """Lengths of padded rows."""
    fill_length: int = 1
    listed: int = 0
    """KV slots in the longest list that a draft makes for attention, those of padded rows included."""
    room: int | None = None
    """For how many the captured list has room; None where there is no such list."""
    moved: tuple[str, ...] = ()
    """Captured tensors that aren't where they were at capture."""


@dataclass(slots=True)
class Compared:
    """A forward that was replayed and run eagerly as well."""

    mode: str
    batch_size: int
    replayed: Tensor
    """Logits (tokens, vocabulary)."""
    eager: Tensor


@dataclass(slots=True)
class Request:
    """A request that holds a row of the table."""

    number: int
    row: int
    prompt: int
    """Tokens of its prompt."""
    output: list[int]
    committed: int
    """Tokens whose KV entries are the request's for good; in overlap scheduling with those in flight."""
    allocated: int
    protected: int
    """Leading positions whose slots belong to the radix cache."""
    in_flight: int
    """Decode steps launched for it whose result isn't processed."""
    finished: bool
    retractions: int
    prefilled: bool
    """Whether its prompt is in the KV cache as a whole."""


@dataclass(slots=True)
class Memory:
    """Who owns which KV pages."""

    pages: int
    """Usable pages are 1 to this; page 0 takes what padded tokens write."""
    page_size: int
    free: Tensor
    """Pages that can be allocated, those about to be merged included."""
    cached: Tensor
    """Pages of the radix cache."""
    table: Tensor
    free_rows: list[int]
    rows: int
    """Usable rows are 1 to this."""
    locked_tokens: int
    """Tokens of the radix cache that requests hold."""


@dataclass(slots=True)
class Launch(Fetched):
    """A decode batch as the scheduler hands it to the worker."""

    TOGETHER = ("seq_lens", "bonus_tokens")
    step: TraceStep
    requests: list[Request]
    speculative: bool
    seq_lens: Tensor
    """(batch size,) int; without speculation the token about to be read counts already."""
    seq_lens_cpu: Tensor
    spec_rows: dict[str, int] | None
    """Rows of each field that the step drafts from; None where there is nothing to draft from."""
    bonus_tokens: Tensor | None
    """(batch size,) int: the token that each request's step starts from, where the scheduler knows it by now."""


@dataclass(slots=True)
class After(Fetched):
    """A step whose result has just been processed."""

    TOGETHER = ("pages_free", "pages_cached", "near")
    step: TraceStep
    requests: list[Request]
    memory: Memory
    idle: bool
    streamed: dict[int, list[int]] = field(default_factory=dict)
    """Tokens streamed so far, by request, of those in the step."""
    logprobs: dict[int, list[float]] = field(default_factory=dict)
    """Their log probabilities, where the program asked for them."""
    top_logprobs: dict[int, list[dict[int, float]]] = field(default_factory=dict)
    """Those of the likeliest tokens in the place of each."""
    retracted: set[int] = field(default_factory=set)
    """Requests of the step that have been retracted."""
    read: dict[int, int] = field(default_factory=dict)
    """The token that the step's DECODE read, of each request; of other steps nothing."""
    ended: dict[int, str] = field(default_factory=dict)
    """Finish reasons of the requests that ended with this step."""
    without_draft: set[int] = field(default_factory=set)
    """After a spec step, requests whose KV holds slots in which SGLang itself leaves no right draft entry:
    cases/upstream/draft-*."""
    misdrafted: bool = False
    """Whether SGLang itself drafted this spec step in the wrong slots: v1-draft-at-page-ends, v1-draft-locs-race."""

    @property
    def pages_free(self) -> Tensor:
        """(free pages,) int."""
        return self.memory.free

    @property
    def pages_cached(self) -> Tensor:
        """(pages of the radix cache,) int."""
        return self.memory.cached

    @property
    def near(self) -> Tensor | None:
        """The part of the table in which the requests' slots are; None without requests."""
        if not self.requests:
            return None
        longest = max([request.allocated for request in self.requests])
        return _corner(self.memory.table, self._last_row + 1, longest)

    def pages_owned(self) -> list[Values]:
        """The pages that each request owns: whole ones, since what the radix cache has is aligned."""
        if not self.requests:
            return []
        slots, size = _by_row(self.array("near"), self.memory.table, self._last_row + 1), self.memory.page_size
        return [slots[request.row, request.protected : request.allocated : size] // size for request in self.requests]

    @property
    def _last_row(self) -> int:
        return max([request.row for request in self.requests])


@dataclass(slots=True)
class DraftCache:
    """The draft's KV entries of one request, or of one path through the radix cache."""

    request: int | None
    """None for the radix cache's."""
    tokens: list[int]
    """Prompt and output."""
    keys: Tensor
    """(positions, heads, head size)."""
    values: Tensor
    excepted: tuple[int, ...] = ()
    """Positions at which SGLang itself leaves no right entry: cases/upstream/draft-*."""
