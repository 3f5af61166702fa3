"""A program: an engine configuration and the operations to run on it, as one immutable value.

The same value is generated, shrunk, replayed and kept in `cases/`. It prints as valid Python and as versioned JSON,
and knows nothing of SGLang.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal, Self

from pydantic import Field, NonNegativeInt, PositiveInt, ValidationError, model_validator

from harness.configuration import EngineConfig, Value
from harness.errors import MalformedProgram
from harness.prompts import Prompt

VERSION = 1
"""Version of the JSON form; a newer one is refused, never guessed at."""

DEFAULT_PROMPT = Prompt(period=7, seed=0, length=9)

TokenIds = Annotated[tuple[NonNegativeInt, ...], Field(min_length=1)]


class Submit(Value):
    """`count` requests enter the waiting queue.

    A `Prompt` gives each of them its own: seeds `seed`, `seed + 1`, ... Token ids are the same prompt for all, which
    the radix cache shares. A request ends after `max_new_tokens` tokens or, unless `ignore_eos`, at `stop_token` or the
    model's end-of-sequence token; the token it ends at is part of its output. `ignore_eos` is the default without a
    `stop_token` and refused with one, since SGLang then ignores both (Req._check_token_based_finish). `logprobs` asks
    for the natural logarithm of each output token's probability; with it `top_logprobs` asks for those of so many
    tokens, the likeliest in its place, and `token_ids_logprob` for those of these tokens.
    """

    op: Literal["submit"] = "submit"
    count: PositiveInt = 1
    prompt: Prompt | TokenIds = DEFAULT_PROMPT
    max_new_tokens: PositiveInt = 8
    stop_token: NonNegativeInt | None = None
    ignore_eos: bool = True
    temperature: float = Field(default=0.0, ge=0.0)
    frequency_penalty: float = Field(default=0.0, ge=-2.0, le=2.0)
    logprobs: bool = False
    top_logprobs: NonNegativeInt = 0
    token_ids_logprob: tuple[NonNegativeInt, ...] = ()

    @property
    def open(self) -> bool:
        """Whether more than one answer is right: tokens are drawn, or penalised by rules that speculation relaxes."""
        return self.temperature > 0 or self.frequency_penalty != 0

    @model_validator(mode="before")
    @classmethod
    def _stop_token_needs_eos(cls, data: Any) -> Any:
        if isinstance(data, dict) and data.get("stop_token") is not None:
            return {"ignore_eos": False, **data}
        return data

    @model_validator(mode="after")
    def _stop_token_is_heeded(self) -> Self:
        if self.stop_token is not None and self.ignore_eos:
            raise ValueError("stop_token and ignore_eos exclude each other: SGLang ignores the stop token then")
        return self

    @model_validator(mode="after")
    def _more_logprobs_with_logprobs(self) -> Self:
        if (self.top_logprobs or self.token_ids_logprob) and not self.logprobs:
            raise ValueError("top_logprobs and token_ids_logprob come with logprobs alone: ask for these, too")
        return self

    def prompts(self) -> list[tuple[int, ...]]:
        """The token ids of each of the `count` prompts."""
        if isinstance(self.prompt, Prompt):
            return [prompt.tokens() for prompt in self.family()]
        return [self.prompt] * self.count

    def family(self) -> list[Prompt]:
        """The `Prompt` of each of the `count` requests; raises TypeError where the prompt is token ids."""
        if not isinstance(self.prompt, Prompt):
            raise TypeError("a prompt given as token ids has no family of seeds")
        return [replace(self.prompt, seed=self.prompt.seed + i) for i in range(self.count)]


class Step(Value):
    """`count` iterations of the scheduler's loop, idle ones included."""

    op: Literal["step"] = "step"
    count: PositiveInt = 1


class Abort(Value):
    """Abort the request that was submitted as number `request`, from 0; one that ended already is left alone."""

    op: Literal["abort"] = "abort"
    request: NonNegativeInt


class Retract(Value):
    """At the next decode, SGLang retracts as it does when KV memory runs out: at least one request, never the last."""

    op: Literal["retract"] = "retract"


class Flush(Value):
    """Ask for the caches to be flushed; SGLang refuses while requests are pending."""

    op: Literal["flush"] = "flush"


class Drain(Value):
    """Iterate until nothing is waiting, running or in flight."""

    op: Literal["drain"] = "drain"


Operation = Annotated[Submit | Step | Abort | Retract | Flush | Drain, Field(discriminator="op")]


class Program(Value):
    """An engine configuration and a list of operations."""

    config: EngineConfig = EngineConfig()
    operations: tuple[Operation, ...] = ()

    @property
    def submits(self) -> tuple[Submit, ...]:
        """The submissions, in order."""
        return tuple(operation for operation in self.operations if isinstance(operation, Submit))

    def to_json(self, indent: int | None = 2) -> str:
        """The versioned JSON form, defaults written out: a kept program must not change with them."""
        return json.dumps({"version": VERSION, "program": self.model_dump(mode="json")}, indent=indent)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read the JSON form; raises MalformedProgram with what is wrong, in one line."""
        try:
            content = json.loads(text)
        except json.JSONDecodeError as error:
            raise MalformedProgram(f"not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from None
        except RecursionError:
            raise MalformedProgram("not a program: nested too deeply") from None
        if not isinstance(content, dict) or "version" not in content or "program" not in content:
            raise MalformedProgram('not a program: expected an object with "version" and "program"')
        if content["version"] != VERSION:
            raise MalformedProgram(
                f"program version {content['version']!r} isn't {VERSION}, the one that this harness reads: "
                "use the harness that wrote it, or a newer one"
            )
        try:
            return cls.model_validate(content["program"])
        except ValidationError as error:
            raise MalformedProgram(first_problem(error)) from None

    @classmethod
    def from_batch_sizes(
        cls,
        config: EngineConfig,
        sizes: Sequence[int],
        *,
        steps_each: int = 4,
        prompt: Prompt = DEFAULT_PROMPT,
    ) -> Self:
        """Hold the decode batch at each of `sizes` in turn, `steps_each` decode steps each, then drain.

        It grows by submitting and shrinks by aborting the youngest requests. Whether the configuration can hold the
        sizes is `harness.limits.check_batch_sizes`' to say.
        """
        return cls(config=config, operations=tuple(_hold(config, sizes, steps_each, prompt)))


def _hold(config: EngineConfig, sizes: Sequence[int], steps_each: int, prompt: Prompt) -> list[Operation]:
    operations: list[Operation] = []
    running: list[int] = []
    submitted = 0
    # Each request must outlive every later step, at the most that a step can accept, and end in the drain.
    lifetime = (len(sizes) * (steps_each + 1) + 1) * (config.steps + 1 if config.speculative else 1)
    for size in sizes:
        arriving = size - len(running)
        if arriving > 0:
            first = replace(prompt, seed=prompt.seed + submitted)
            operations.append(Submit(count=arriving, prompt=first, max_new_tokens=lifetime))
            running += range(submitted, submitted + arriving)
            submitted += arriving
        else:
            operations += [Abort(request=running.pop()) for _ in range(-arriving)]
        operations.append(Step(count=steps_each + _transition_steps(config, arriving, prompt.length)))
    return [*operations, Drain()]


def _transition_steps(config: EngineConfig, arriving: int, prompt_length: int) -> int:
    """Iterations before the batch has its new size: the prefills, or the one more step of an aborted request."""
    if arriving > 0 and config.chunked_prefill_size:
        return -(-arriving * prompt_length // config.chunked_prefill_size)
    return int(arriving != 0)


def first_problem(error: ValidationError) -> str:
    """The first problem that pydantic found, as `place: problem`, in one line."""
    problem: dict[str, Any] = dict(error.errors()[0])
    place = ".".join(str(part) for part in problem["loc"])
    message = str(problem["msg"]).removeprefix("Value error, ")
    return f"{place}: {message}" if place else message
