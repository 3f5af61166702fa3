"""A trace: what a program did, as plain data, a row per scheduler step."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Any

VERSION = 1


@dataclass(slots=True)
class TraceStep:
    """One iteration of the scheduler's loop: the batch it launched and what came of it.

    With overlap scheduling the result of a batch is processed one iteration later; `tokens_out` and `accepted` are
    filled then, and belong to the batch that produced them.
    """

    index: int
    forward_mode: str
    """Mode of the target's forward: EXTEND, DECODE, TARGET_VERIFY ..., or IDLE where no batch was launched."""
    requests: tuple[int, ...] = ()
    """The batch, as request numbers in order of submission."""
    tokens_in: int = 0
    """Tokens in the target's forward, over all `requests`, padding not counted."""
    padded_size: int | None = None
    """Requests in the captured graph that was replayed; None when eager."""
    tokens_out: tuple[int, ...] = ()
    """Tokens streamed for each of `requests`."""
    accepted: tuple[int, ...] | None = None
    """Draft tokens accepted for each of `requests`, the bonus token not counted; None unless a spec step."""
    kv_free: int = 0
    """KV slots, in tokens, that are free or can be evicted from the radix cache after the step."""
    waiting: int = 0
    """Requests in the waiting queue after the step."""
    processed: bool = field(default=True, repr=False)
    """Whether the batch's result, if it has one, was processed."""

    @property
    def batch_size(self) -> int:
        """Number of requests in the batch."""
        return len(self.requests)

    @property
    def graph(self) -> bool:
        """Whether the target's forward replayed a captured graph."""
        return self.padded_size is not None

    @property
    def spec(self) -> bool:
        """Whether this was a spec step: a verify of more than the root of each request's tree."""
        return self.forward_mode == "TARGET_VERIFY" and self.tokens_in > self.batch_size

    @property
    def plain(self) -> bool:
        """Whether this was a plain step: one token for each request, nothing drafted."""
        return self.forward_mode in ("DECODE", "TARGET_VERIFY") and self.tokens_in == self.batch_size


@dataclass(slots=True)
class RequestTrace:
    """What became of one request."""

    number: int
    prompt: tuple[int, ...]
    output: list[int] = field(default_factory=list)
    """Token ids as they were streamed."""
    logprobs: list[float] = field(default_factory=list)
    """Natural logarithm of each output token's probability, where the program asked for them."""
    top_logprobs: list[dict[int, float]] = field(default_factory=list)
    """Those of the likeliest tokens in the place of each output token."""
    token_ids_logprobs: list[dict[int, float]] = field(default_factory=list)
    """Those of the tokens that the program named."""
    finish_reason: str | None = None
    """length, stop or abort; None while it runs."""
    aborted: bool = False
    """Whether the program aborted it."""
    retractions: int = 0


@dataclass(frozen=True, slots=True)
class Accepted:
    """Draft tokens that one request accepted in one spec step."""

    step: int
    request: int
    produced: int
    """Output tokens of the request before the step."""
    count: int


@dataclass(slots=True)
class Trace:
    """Steps and requests of one run of a program."""

    steps: list[TraceStep] = field(default_factory=list)
    requests: list[RequestTrace] = field(default_factory=list)
    flushes: list[bool] = field(default_factory=list)
    """Whether each flush of the program was granted."""
    idle: bool = False
    """Whether, at the end, nothing was waiting, running or in flight."""

    @property
    def decode_sizes(self) -> list[int]:
        """Batch sizes of the decode steps, in order."""
        return [step.batch_size for step in self.decode_steps()]

    @property
    def tokens_streamed(self) -> int:
        """Tokens streamed so far, over all requests."""
        return sum(len(request.output) for request in self.requests)

    @property
    def switches(self) -> tuple[int, int]:
        """How often a plain step followed a spec step, and a spec step a plain one; prefills between don't matter."""
        modes = [step.spec for step in self.decode_steps()]
        pairs = list(pairwise(modes))
        return pairs.count((True, False)), pairs.count((False, True))

    def accepted(self) -> Iterator[Accepted]:
        """What each spec step accepted, but for the last of each request: a run may reach past its end."""
        produced = [0] * len(self.requests)
        for step in self.steps:
            for place, (number, count) in enumerate(zip(step.requests, step.tokens_out, strict=True)):
                ends = produced[number] + count == len(self.requests[number].output)
                if step.accepted is not None and count and not ends:
                    yield Accepted(step.index, number, produced[number], step.accepted[place])
                produced[number] += count

    def decode_steps(self) -> Iterable[TraceStep]:
        """Spec and plain steps, without prefills and idle iterations."""
        return (step for step in self.steps if step.forward_mode in ("DECODE", "TARGET_VERIFY"))

    def to_json(self, indent: int | None = None) -> str:
        """The versioned JSON form."""
        return json.dumps({"version": VERSION, **_plain(self)}, indent=indent)


def _plain(trace: Trace) -> dict[str, Any]:
    content = asdict(trace)
    for written, step in zip(content["steps"], trace.steps, strict=True):
        del written["processed"]
        written |= {"batch_size": step.batch_size, "graph": step.graph}
    return content
