"""What checks look at: a scheduler at one moment, as plain data and tensors, free of any release's names.

Tensors are the scheduler's own, on its device: a check reads them at once and never writes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness.trace import TraceStep

if TYPE_CHECKING:  # torch takes seconds to import, and a command line that is refused needs none
    from torch import Tensor


@dataclass(slots=True)
class Forward:
    """A forward of the target, about to run."""

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
    out_cache_loc: Tensor
    """(tokens,) int: the KV slot that each token's entry is written to."""
    rows: Tensor
    """(batch size,) int: each request's row of `table`."""
    table: Tensor
    """(rows, context) int32: the KV slot of each position of each request."""
    allocated: tuple[int, ...]
    """Positions of each request that it owns slots for."""


@dataclass(slots=True)
class Replay:
    """A captured graph that is about to be replayed, its inputs prepared."""

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
    """KV slots that padded rows write to."""
    padded_lengths: Tensor | None = None
    """Lengths of padded rows."""
    fill_length: int = 1
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
    without_draft: bool
    """Whether its KV holds slots in which SGLang itself leaves no right draft entry: cases/upstream/draft-*."""


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
class Launch:
    """A decode batch as the scheduler hands it to the worker."""

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
class After:
    """A step whose result has just been processed."""

    step: TraceStep
    requests: list[Request]
    memory: Memory
    idle: bool
    streamed: dict[int, list[int]] = field(default_factory=dict)
    """Tokens streamed so far, by request, of those in the step."""
    read: dict[int, int] = field(default_factory=dict)
    """The token that the step's DECODE read, of each request; of other steps nothing."""
    ended: dict[int, str] = field(default_factory=dict)
    """Finish reasons of the requests that ended with this step."""


@dataclass(slots=True)
class DraftCache:
    """The draft's KV entries of one request."""

    request: int
    tokens: list[int]
    """Prompt and output."""
    keys: Tensor
    """(positions, heads, head size)."""
    values: Tensor
    excepted: tuple[int, ...] = ()
    """Positions at which SGLang itself leaves no right entry: cases/upstream/draft-*."""
