"""I10: speculation changes no token."""

from collections.abc import Sequence

from harness.checks.base import Check, Findings, Skipped, Violation
from harness.observation import After
from harness.oracle import Answer, closed_form
from harness.program import Program


class Losslessness(Check):
    """Every greedy token is the right one, and a request ends where it must, for the reason that it must.

    Right is the closed form of the model pair, or what a plain run of the same requests gave (`harness.oracle`).
    """

    name = "I10-losslessness"

    def __init__(self, program: Program, answers: Sequence[Answer] | None = None) -> None:
        super().__init__(program)
        self._answers = closed_form(program) if answers is None else answers
        self._seen: dict[int, int] = {}

    def after_step(self, after: After) -> Findings:
        """Compare the tokens that the step added."""
        for number in after.step.requests:
            answer = None if self._answers is None else self._answers[number]
            if answer is None or answer.tokens is None:
                yield Skipped("no right answer is known: another model pair, sampling or a penalty")
                continue
            self.answered += 1
            yield from self._compare(after, number, answer.tokens, answer.finish_reason)

    def _compare(self, after: After, number: int, right: tuple[int, ...], reason: str | None) -> Findings:
        streamed, start = after.streamed[number], self._seen.get(number, 0)
        self._seen[number] = len(streamed)
        for place in range(start, min(len(streamed), len(right))):
            if streamed[place] != right[place]:
                yield Violation(f"output token {place}", right[place], streamed[place], number)
                return
        if len(streamed) > len(right):
            yield Violation("number of output tokens", f"{len(right)}, then {reason}", len(streamed), number)
        ended = after.ended.get(number)
        if ended not in (None, "abort") and (ended, len(streamed)) != (reason, len(right)):
            yield Violation("end", f"{reason} after {len(right)} tokens", f"{ended} after {len(streamed)}", number)
