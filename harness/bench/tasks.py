"""What an engine that is measured is asked to do, and what it answers: plain data, between processes."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from harness.bench.breakdown import Breakdown
from harness.configuration import EngineConfig
from harness.serving.line import Line, Reply
from harness.serving.questions import Questions


class Task(BaseModel):
    """Requests for a closed loop."""

    model_config = ConfigDict(frozen=True)

    prompt_tokens: int
    lengths: tuple[int, ...]
    """Tokens of each answer."""
    in_flight: tuple[int, ...]
    """Requests wanted in flight while so many have ended."""
    first_seed: int
    known: bool
    """Whether the closed form tells the right answers; if not, tokens are counted."""

    def questions(self, config: EngineConfig) -> Questions:
        """The requests themselves."""
        return Questions.of_length(config, self.prompt_tokens, list(self.lengths), self.first_seed, self.known)


class Switching(BaseModel):
    """Requests that take a toggle across its threshold and back (`harness.bench.switches`)."""

    model_config = ConfigDict(frozen=True)

    threshold: int
    prompt_tokens: int


class Stepping(BaseModel):
    """Steps of one batch to be timed (`harness.bench.stepping`)."""

    model_config = ConfigDict(frozen=True)

    batch_size: int
    prompt_tokens: int


class Profiling(BaseModel):
    """Steps of one batch to be timed and traced (`harness.bench.profile`)."""

    model_config = ConfigDict(frozen=True)

    batch_size: int
    prompt_tokens: int
    trace: Path
    """Where the trace goes, as gzipped JSON that Perfetto opens."""


class Answers(BaseModel):
    """How a task's requests ended."""

    replies: list[Reply]
    wall_s: float

    def line(self, concurrency: int) -> Line:
        """Of a task at one concurrency."""
        return Line(concurrency, self.replies, self.wall_s)


class Switches(BaseModel):
    """What switches cost, in milliseconds, one figure for each."""

    off_ms: list[float]
    """Of an engine without a toggle: what it costs that a request joins."""
    on_ms: list[float]
    spec_step_ms: float | None
    """Median away from switches; None where there was no such step."""
    plain_step_ms: float | None


class Stepped(BaseModel):
    """How long steps of one batch took."""

    step_ms: float
    """On average."""
    tokens_per_s: float
    """Of all requests."""


class Profiled(BaseModel):
    """Where the time of one engine's steps goes."""

    engine: str = ""
    """Its name; whoever asked knows it."""
    batch_size: int
    step_ms: float
    """Of the timed steps, on average; nothing was recorded meanwhile."""
    kv_tokens: tuple[float, float]
    """Of a request, on average, when the traced steps began and when they ended."""
    breakdown: Breakdown


class Said(BaseModel):
    """One line that an engine's process writes."""

    booted_s: float | None = None
    refused: str | None = None
    failed: str | None = None
    """What was raised; it says nothing more after that."""
    answers: Answers | None = None
    switches: Switches | None = None
    stepped: Stepped | None = None
    profiled: Profiled | None = None


class Wanted(BaseModel):
    """One line that it reads; an empty one wants it to boot."""

    task: Task | None = None
    switching: Switching | None = None
    stepping: Stepping | None = None
    profiling: Profiling | None = None
