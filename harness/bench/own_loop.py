"""A program as what SGLang's own loop receives, for running it without the harness."""

from collections.abc import Iterator
from typing import Any

from harness.program import Abort, Flush, Program, Retract, Step, Submit


def script(program: Program, iterations: int, messages: Any) -> Iterator[list[Any]]:
    """What the scheduler receives in each of `iterations`, as the engine would send it.

    `messages` is the release's module of messages (`requests`). They are made as the loop asks for them, as the engine
    makes its own.
    """
    waiting: list[Any] = []
    sent = number = 0
    for operation in program.operations:
        match operation:
            case Submit():
                for prompt in operation.prompts():
                    waiting.append(messages.generate(operation, number, prompt))
                    number += 1
            case Abort(request=request):
                waiting.append(messages.abort(request))
            case Flush():
                waiting.append(messages.flush())
            case Step(count=count):
                for _ in range(count):
                    yield waiting
                    waiting = []
                    sent += 1
            case Retract():
                raise ValueError("a forced retraction is no message: SGLang's own loop can't be given one")
    for _ in range(iterations - sent):
        yield waiting
        waiting = []
