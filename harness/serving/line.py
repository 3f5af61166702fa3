"""What became of requests, and the line that is printed of all at one concurrency."""

import statistics
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reply:
    """What became of one request."""

    latency_s: float
    tokens: int
    decode_steps: int | None
    """Spec and plain ones that it took part in; None from an engine that doesn't speculate."""
    problem: str | None
    """Why it isn't ok; None if it is."""


@dataclass(frozen=True, slots=True)
class Line:
    """All replies at one concurrency."""

    concurrency: int
    replies: list[Reply]
    wall_s: float

    @property
    def right(self) -> list[Reply]:
        """Those that are ok."""
        return [reply for reply in self.replies if reply.problem is None]

    @property
    def ok(self) -> bool:
        """Whether all are."""
        return len(self.right) == len(self.replies)

    @property
    def tokens_per_s(self) -> float:
        """Of the requests that are ok."""
        return sum(reply.tokens for reply in self.right) / self.wall_s

    @property
    def tokens_per_step(self) -> float | None:
        """Tokens of a request in one decode step: 1 when plain; None from an engine that doesn't speculate."""
        counted = [(reply.tokens, reply.decode_steps) for reply in self.replies if reply.decode_steps]
        # The first token comes from the prefill.
        return sum(tokens - 1 for tokens, _ in counted) / sum(steps for _, steps in counted) if counted else None

    def latency_s(self, percent: int) -> float:
        """A percentile over the requests that are ok; 0 where none is."""
        return percentile([reply.latency_s for reply in self.right] or [0.0], percent)

    def __str__(self) -> str:
        average = statistics.mean([reply.latency_s for reply in self.right] or [0.0])
        each = statistics.mean([reply.tokens / reply.latency_s for reply in self.right] or [0.0])
        return (
            f"C={self.concurrency:3d} | {len(self.replies)} requests | throughput: {self.tokens_per_s:7.1f} tok/s | "
            f"per-req: {each:6.1f} tok/s | latency avg/p50/p99: {average:6.1f}/"
            f"{self.latency_s(50):6.1f}/{self.latency_s(99):6.1f}s | "
            f"ok: {len(self.right)}/{len(self.replies)}"
        )


def percentile(values: list[float], percent: int) -> float:
    """The value at that place in order, none in between."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(percent / 100 * (len(ordered) - 1)))]
