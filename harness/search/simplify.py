"""The domain pass: simpler programs that might fail as well, most daring first."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

from pydantic import ValidationError

from harness.configuration import EngineConfig, Toggle, Worker
from harness.errors import UsageError
from harness.limits import check_program
from harness.program import DEFAULT_PROMPT, Abort, Drain, Operation, Program, Step, Submit
from harness.prompts import Prompt

PLAINER: tuple[dict[str, object], ...] = (
    {"stop_token": None},
    {"temperature": 0.0},
    {"frequency_penalty": 0.0},
    {"logprobs": False, "top_logprobs": 0, "token_ids_logprob": ()},
    {"top_logprobs": 0},
    {"token_ids_logprob": ()},
)
"""What a submission may do without."""


def candidates(program: Program) -> Iterator[Program]:
    """Programs that are simpler in one respect; those that couldn't run are left out.

    The simplest engine of all comes first: the others are then tried on one that boots quickly.
    """
    engines = list(_configurations(program))
    for simpler in (*engines[:1], *_operations(program), *engines[1:]):
        try:
            check_program(simpler)
        except UsageError:
            continue
        yield simpler


def _operations(program: Program) -> Iterator[Program]:
    operations = program.operations
    for index in range(len(operations)):
        yield _with(program, _without(operations, index))
    for index, (operation, after) in enumerate(pairwise(operations)):
        if isinstance(operation, Step) and isinstance(after, Step):
            merged: Operation = Step(count=operation.count + after.count)
            yield _with(program, (*operations[:index], merged, *operations[index + 2 :]))
        if isinstance(operation, Submit) and isinstance(after, Submit):
            merged = operation.model_copy(update={"count": operation.count + after.count})
            yield _with(program, (*operations[:index], merged, *operations[index + 2 :]))
    for index, operation in enumerate(operations):
        for simpler in _simpler(operation):
            changed = (*operations[:index], simpler, *operations[index + 1 :])
            yield _with(program, _renumbered(operations, changed))


def _simpler(operation: Operation) -> Iterator[Operation]:
    match operation:
        case Step(count=count):
            for fewer in _smaller(count):
                yield Step(count=fewer)
        case Drain():
            yield Step()
            yield Step(count=2)
        case Submit():
            yield from _simpler_submits(operation)
        case _:
            return


def _simpler_submits(submit: Submit) -> Iterator[Submit]:
    for count in _smaller(submit.count):
        yield submit.model_copy(update={"count": count})
    for plainer in PLAINER:
        if any(getattr(submit, name) != value for name, value in plainer.items()):
            yield submit.model_copy(update=plainer)
    if not submit.ignore_eos and submit.stop_token is None:
        yield submit.model_copy(update={"ignore_eos": True})
    for tokens in _smaller(submit.max_new_tokens):
        yield submit.model_copy(update={"max_new_tokens": tokens})
    if isinstance(submit.prompt, Prompt) and submit.prompt != DEFAULT_PROMPT:
        yield submit.model_copy(update={"prompt": DEFAULT_PROMPT})
        yield submit.model_copy(update={"prompt": replace(DEFAULT_PROMPT, seed=submit.prompt.seed)})
        yield submit.model_copy(update={"prompt": replace(submit.prompt, length=submit.prompt.period + 2)})
        yield submit.model_copy(update={"prompt": replace(submit.prompt, seed=0)})


def _smaller(number: int) -> Iterator[int]:
    """1, half and one less, as far as they differ."""
    yield from sorted({1, number // 2, number - 1} - {0, number})


def _configurations(program: Program) -> Iterator[Program]:
    config = program.config
    for changes in _simpler_engines(config):
        try:
            simpler = EngineConfig(**{**_given(config), **changes})
        except ValidationError:
            continue
        if simpler != config:
            yield program.model_copy(update={"config": simpler})


def _given(config: EngineConfig) -> dict[str, Any]:
    return {name: getattr(config, name) for name in EngineConfig.model_fields}


def _simpler_engines(config: EngineConfig) -> Iterator[dict[str, Any]]:
    """All simplifications at once, since each engine takes a while to boot; then one by one."""
    one_by_one = list(_simplifications(config))
    together: dict[str, Any] = {}
    for changes in one_by_one:
        together = changes | together  # the first of a field is its simplest
    yield together
    yield from one_by_one


def _simplifications(config: EngineConfig) -> Iterator[dict[str, Any]]:
    if config.toggle is not None and config.toggle != Toggle(threshold=1):
        yield {"toggle": config.toggle.model_copy(update={"threshold": 1, "hysteresis": 0})}
        yield {"toggle": config.toggle.model_copy(update={"hysteresis": 0})}
    plain = EngineConfig(worker=config.worker)
    if config.graphs:
        yield {"graphs": ()}
        yield {"graphs": config.graphs[:1]}
        yield {"graphs": config.graphs[:2]}
    for name in ("page_size", "chunked_prefill_size", "radix_cache", "dtype", "attention_backend"):
        yield {name: getattr(plain, name)}
    yield {"kv_tokens": plain.kv_tokens, "context_length": plain.context_length}
    yield {"max_running_requests": plain.max_running_requests}
    if config.worker is Worker.V1:
        for topk in (1, 2):
            if topk < config.topk:
                yield {"topk": topk, "draft_tokens": None}
    if config.steps > 1:
        yield {"steps": 1, "draft_tokens": None}
    if config.steps > 3:
        yield {"steps": 3, "draft_tokens": None}


def _with(program: Program, operations: tuple[Operation, ...]) -> Program:
    return program.model_copy(update={"operations": operations})


def _without(operations: tuple[Operation, ...], index: int) -> tuple[Operation, ...]:
    """Leave one out; aborts of its requests go with it."""
    return _renumbered(operations, (*operations[:index], None, *operations[index + 1 :]))


def _renumbered(before: tuple[Operation, ...], after: tuple[Operation | None, ...]) -> tuple[Operation, ...]:
    """Let aborts name the same requests as before, now that one operation of the same place has changed."""
    numbers: dict[int, int] = {}
    old = new = 0
    for was, now in zip(before, after, strict=True):
        if isinstance(was, Submit):
            kept = now.count if isinstance(now, Submit) else 0
            # Of fewer requests the last stands for those that are left out.
            numbers |= {old + place: new + min(place, kept - 1) for place in range(was.count) if kept}
            old, new = old + was.count, new + kept
    changed: list[Operation] = []
    for operation in after:
        if isinstance(operation, Abort):
            if operation.request in numbers:
                changed.append(Abort(request=numbers[operation.request]))
        elif operation is not None:
            changed.append(operation)
    return tuple(changed)
