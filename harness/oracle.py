"""The right answer to every request of a program, and the judgement of a trace by it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from harness.configuration import EngineConfig, Worker
from harness.limits import output_limit
from harness.program import Drain, Program, Submit
from harness.prompts import EOS_TOKEN, Prompt, proposable
from harness.trace import RequestTrace, Trace


@dataclass(frozen=True, slots=True)
class Answer:
    """What one request must stream when nobody aborts it."""

    tokens: tuple[int, ...]
    finish_reason: str
    """length or stop."""


@dataclass(frozen=True, slots=True)
class Wrong:
    """One request that didn't get its answer."""

    request: int
    message: str


def closed_form(program: Program) -> list[Answer] | None:
    """The answers, in order of submission, without running anything.

    None where there is no closed form: another model pair, prompts given as token ids, or sampling.
    """
    submits = [operation for operation in program.operations if isinstance(operation, Submit)]
    if program.config.models is not None or any(not known(submit) for submit in submits):
        return None
    return [answer_to(program.config, submit, prompt) for submit in submits for prompt in family(submit)]


def known(submit: Submit) -> bool:
    """Whether the built-in model pair's answer is known in closed form."""
    return isinstance(submit.prompt, Prompt) and submit.temperature == 0


def family(submit: Submit) -> Iterator[Prompt]:
    """The prompt of each of the submitted requests."""
    assert isinstance(submit.prompt, Prompt)
    return (replace(submit.prompt, seed=submit.prompt.seed + i) for i in range(submit.count))


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
    config = program.config.model_copy(update={"worker": Worker.NONE, "overlap": False})
    submits = tuple(operation for operation in program.operations if isinstance(operation, Submit))
    return Program(config=config, operations=(*submits, Drain()))


def answers_of(plain: Trace) -> list[Answer]:
    """The answers that a plain run gave."""
    return [Answer(tuple(request.output), request.finish_reason or "unfinished") for request in plain.requests]


def judge(trace: Trace, answers: Sequence[Answer]) -> list[Wrong]:
    """Compare every request with its answer; one that the program aborted must be right as far as it got."""
    return [
        Wrong(request.number, message)
        for request, answer in zip(trace.requests, answers, strict=False)
        if (message := _judge_one(request, answer))
    ]


def _judge_one(request: RequestTrace, answer: Answer) -> str | None:
    for position, (seen, expected) in enumerate(zip(request.output, answer.tokens, strict=False)):
        if seen != expected:
            return f"output token {position} is {seen}, must be {expected}"
    if len(request.output) > len(answer.tokens):
        return f"{len(request.output)} tokens, must end after {len(answer.tokens)} ({answer.finish_reason})"
    if request.aborted:
        return None
    if len(request.output) < len(answer.tokens):
        return f"{len(request.output)} of {len(answer.tokens)} tokens, then {request.finish_reason or 'nothing'}"
    if request.finish_reason != answer.finish_reason:
        return f"finished by {request.finish_reason}, must be {answer.finish_reason}"
    return None
