"""Requests of a wanted shape that a configuration can serve."""

from dataclasses import replace
from functools import lru_cache

from harness.configuration import EngineConfig
from harness.errors import UsageError
from harness.limits import INPUT_RESERVE, check_program, output_limit
from harness.program import Program, Submit
from harness.prompts import EOS_TOKEN, MAXIMUM_CONTEXT, Prompt
from harness.search.moves import Chunks, End, Shape
from harness.search.upstream import outruns_context, spoils, stops_late

SEEDS_TRIED = 200
EARLIEST_END = 4
"""Output tokens at least within which an end of sequence is sought: fewer take too many seeds."""
TOP_LOGPROBS = 2
"""That a request asks for which asks for logprobs: enough to see whose they are."""
MOST_CHUNKS = 10
"""In how many chunks a prompt may be prefilled: each takes a step."""


def submission(config: EngineConfig, shape: Shape, count: int, lone: bool) -> Submit | None:
    """The submission nearest to the shape that the configuration can serve; None where it can't serve any.

    `lone`: whether one of its requests may reach the very end of the context (`upstream.outruns_context`).
    """
    wanted = shape
    while True:
        submit = _submit(config, wanted, count)
        if submit is not None and outruns_context(config, submit):
            submit = submit.model_copy(update={"count": 1}) if lone else None
        if submit is not None and _fits(config, submit):
            return submit
        if wanted == Shape():
            return None
        wanted = _smaller(wanted)


def _smaller(shape: Shape) -> Shape:
    """A step towards the simplest shape: a shorter prompt first, then fewer tokens, then none of its peculiarities."""
    if shape.end is End.CONTEXT:
        return replace(shape, end=End.LENGTH)
    if shape.extra or shape.chunks is not Chunks.ANY:
        return replace(shape, extra=shape.extra // 2, chunks=Chunks.ANY)
    if shape.period > Shape().period:
        return replace(shape, period=max(Shape().period, shape.period // 2))
    if shape.new_tokens > Shape().new_tokens:
        return replace(shape, new_tokens=max(Shape().new_tokens, shape.new_tokens // 2))
    return Shape()


def _fits(config: EngineConfig, submit: Submit) -> bool:
    if spoils(config, submit):
        return False
    try:
        check_program(Program.model_construct(config=config, operations=(submit,)))
    except UsageError:
        return False
    return True


def _submit(config: EngineConfig, shape: Shape, count: int) -> Submit | None:
    length = _length(config, shape)
    longest = MOST_CHUNKS * (config.chunked_prefill_size or MAXIMUM_CONTEXT)
    if not shape.period + 2 <= length <= min(longest, MAXIMUM_CONTEXT):
        return None
    tokens = shape.new_tokens
    seed = shape.seed
    stop_token = None
    if shape.end is End.END_OF_SEQUENCE:
        seed = seed_with_end(shape.period, length, EARLIEST_END + shape.end_at, shape.seed)
    prompt = Prompt(period=shape.period, seed=seed, length=length)
    if shape.end is End.STOP_TOKEN:
        stop_token = prompt.sequence(length + shape.end_at + 1)[-1]
    if shape.end is End.CONTEXT:
        tokens = max(1, output_limit(config, length)) + 1 + shape.end_at
    submit = Submit(
        count=count,
        prompt=prompt,
        max_new_tokens=tokens,
        stop_token=stop_token,
        ignore_eos=shape.end not in (End.STOP_TOKEN, End.END_OF_SEQUENCE),
        temperature=shape.temperature,
        frequency_penalty=shape.frequency_penalty,
        logprobs=shape.logprobs,
        top_logprobs=TOP_LOGPROBS if shape.logprobs else 0,
    )
    return _answerable(config, submit)


def _answerable(config: EngineConfig, submit: Submit) -> Submit:
    """With a length limit further off, or no stop, where SGLang would answer wrong."""
    for _ in range(config.steps + 1):
        if not stops_late(config, submit):
            return submit
        submit = submit.model_copy(update={"max_new_tokens": submit.max_new_tokens + 1})
    return submit.model_copy(update={"stop_token": None, "ignore_eos": True})


def _length(config: EngineConfig, shape: Shape) -> int:
    """Prompt length: what the period needs, or whole chunks, or as near to the context's end as `extra` tells."""
    least = shape.period + 2
    if shape.end is End.CONTEXT:
        return max(least, config.context_length - INPUT_RESERVE - 1 - shape.extra)
    size = config.chunked_prefill_size
    if size is None or shape.chunks is Chunks.ANY:
        return least + shape.extra
    rest = 0 if shape.chunks is Chunks.EXACT else config.steps + 1
    chunks = max(1, -(-(least + shape.extra - rest) // size))
    return chunks * size + rest


@lru_cache(maxsize=4096)
def seed_with_end(period: int, length: int, tokens: int, first: int) -> int:
    """The first seed from `first` whose output has the end of sequence within so many tokens after its first.

    `first` itself where there is none nearby.
    """
    for seed in range(first, first + SEEDS_TRIED):
        if EOS_TOKEN in Prompt(period, seed, length).sequence(length + 1 + tokens)[length + 1 :]:
            return seed
    return first
