"""The right answer to every request of a program, and the judgement of a trace by it."""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.configuration import EngineConfig, Worker
from harness.limits import output_limit
from harness.program import Drain, Program, Submit
from harness.prompts import EOS_TOKEN, Prompt, proposable
from harness.trace import RequestTrace, Trace


@dataclass(frozen=True, slots=True)
class Answer:
    """What one request must stream when nobody aborts it; of an open one, only that it must end."""

    tokens: tuple[int, ...] | None
    """None where more than one answer is right."""
    finish_reason: str | None
    """length or stop; None where either may be."""


OPEN = Answer(None, None)
"""Of a `Submit.open` no run is the oracle of another: each draws its own numbers, or penalises in other steps."""


@dataclass(frozen=True, slots=True)
class Wrong:
    """One request that didn't get its answer."""

    request: int
    message: str


def closed_form(program: Program) -> list[Answer] | None:
    """The answers, in order of submission, without running anything.

    None where there is no closed form: another model pair, or prompts given as token ids.
    """
    known = all(isinstance(submit.prompt, Prompt) for submit in program.submits)
    if program.config.models is not None or not known:
        return None
    return [
        OPEN if submit.open else answer_to(program.config, submit, prompt)
        for submit in program.submits
        for prompt in submit.family()
    ]


def answer_to(config: EngineConfig, submit: Submit, prompt: Prompt) -> Answer:
    """The closed-form answer: the repetition goes on, to the first of stop token, end of sequence and length."""
    count = min(submit.max_new_tokens, output_limit(config, prompt.length))
    tokens = prompt.sequence(prompt.length + count)[prompt.length :]
    stops = set() if submit.ignore_eos else {submit.stop_token, EOS_TOKEN}
    for position, token in enumerate(tokens[:-1]):  # at the last, length comes first (Req.check_finished)
        if token in stops:
            return Answer(tokens[: position + 1], "stop")
    return Answer(tokens, "length")


def accepted(prompt: Prompt, produced: int, steps: int) -> int:
    """Draft tokens that a spec step must accept after `produced` output tokens: the leading proposable ones.

    `produced` counts the tokens known before the step, the last of them not yet in the KV cache.
    """
    start = prompt.length + produced
    following = prompt.sequence(start + steps)[start:]
    return next((i for i, token in enumerate(following) if not proposable(token)), steps)


def plain_program(program: Program) -> Program:
    """The program whose outputs are the answers where there is no closed form: the same requests, decoded plainly."""
    config = program.config.untoggled.model_copy(update={"worker": Worker.NONE, "overlap": False})
    return Program(config=config, operations=(*program.submits, Drain()))


def answers_of(program: Program, plain: Trace) -> list[Answer]:
    """The answers that the run of a program's `plain_program` gave."""
    open_ended = [submit.open for submit in program.submits for _ in range(submit.count)]
    return [
        OPEN if any_tokens else Answer(tuple(request.output), request.finish_reason)
        for any_tokens, request in zip(open_ended, plain.requests, strict=True)
    ]


def judge(trace: Trace, answers: Sequence[Answer]) -> list[Wrong]:
    """Compare every request with its answer.

    One that the program aborted, or that still runs when the program ends, must be right as far as it got.
    """
    return [
        Wrong(request.number, message)
        for request, answer in zip(trace.requests, answers, strict=True)
        if (message := _judge_one(request, answer, cut=request.aborted or not (request.finish_reason or trace.idle)))
    ]


def first_difference(one: Sequence[int], other: Sequence[int]) -> int:
    """The first place at which two sequences differ; the shorter one's end where it only stops earlier."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


def _judge_one(request: RequestTrace, answer: Answer, cut: bool) -> str | None:
    if answer.tokens is None:
        ended = cut or request.finish_reason in ("length", "stop")
        return None if ended else f"{len(request.output)} tokens, then {request.finish_reason or 'nothing'}"
    for position, (seen, expected) in enumerate(zip(request.output, answer.tokens, strict=False)):
        if seen != expected:
            return f"output token {position} is {seen}, must be {expected}"
    if len(request.output) > len(answer.tokens):
        return f"{len(request.output)} tokens, must end after {len(answer.tokens)} ({answer.finish_reason})"
    if cut:
        return None
    if len(request.output) < len(answer.tokens):
        return f"{len(request.output)} of {len(answer.tokens)} tokens, then {request.finish_reason or 'nothing'}"
    if request.finish_reason != answer.finish_reason:
        return f"finished by {request.finish_reason}, must be {answer.finish_reason}"
    return None
