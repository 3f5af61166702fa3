"""I9: every step gives every request its tokens, and gives them to whoever listens."""

from harness.checks.base import Check, Findings, Skipped, Violation
from harness.observation import After, Request
from harness.oracle import first_difference
from harness.program import Program

LOST = "SGLang itself loses the first logprob of a request retracted before it: cases/upstream/first-logprob-lost"


class Tokens(Check):
    """At least one token a decode step for a request that goes on, exactly one in a plain step, and all streamed.

    `Req.output_ids` (managers/schedule_batch.py) against `BatchTokenIDOutput.output_ids` (managers/io_struct.py), which
    `stream_output_generation` (managers/scheduler_output_processor_mixin.py) sends on. With them go as many log
    probabilities, where the program asked for any: of each token the one that it has among the likeliest in its place,
    and of a greedy token the largest of these.
    """

    name = "I9-tokens"

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self._submits = [submit for submit in program.submits for _ in range(submit.count)]
        self._ended: set[int] = set()
        self._seen: dict[int, int] = {}
        self._retracted_at_first: set[int] = set()

    def after_step(self, after: After) -> Findings:
        """Count the tokens of the step, compare what was streamed with what the scheduler keeps, look at logprobs."""
        step, running = after.step, {request.number: request for request in after.requests if not request.finished}
        decoded = step.spec or step.plain
        for number, count in zip(step.requests, step.tokens_out, strict=True):
            request = running.get(number)
            least, most = int(decoded and request is not None), 1 if step.plain else None
            if number not in self._ended and (count < least or (most is not None and count > most)):
                kind = "plain" if step.plain else "spec"
                yield Violation(f"tokens in a {kind} step", least if most is None else most, count, number)
            if request is not None:
                self.answered += 1
                yield from self._streamed(after.streamed[number], request)
            if self._submits[number].logprobs and after.ended.get(number) != "abort":
                yield from self._logprobs(after, number)
        self._ended |= after.ended.keys()

    def _streamed(self, streamed: list[int], request: Request) -> Findings:
        if streamed != request.output:
            place = first_difference(streamed, request.output)
            seen = f"{len(streamed)} tokens, another from token {place} on"
            yield Violation("what was streamed", f"{len(request.output)} tokens kept", seen, request.number)

    def _logprobs(self, after: After, number: int) -> Findings:
        submit, tokens, logprobs = self._submits[number], after.streamed[number], after.logprobs[number]
        top = after.top_logprobs[number]
        start, self._seen[number] = self._seen.get(number, 0), len(tokens)
        if not start and number in after.retracted:
            self._retracted_at_first.add(number)
        if self.excuse_sglang and number in self._retracted_at_first and len(logprobs) == len(tokens) - 1:
            yield Skipped(LOST)
            return
        if len(logprobs) != len(tokens):
            yield Violation("number of logprobs streamed", len(tokens), len(logprobs), number)
        elif submit.top_logprobs and len(top) != len(tokens):
            yield Violation("number of places with top logprobs streamed", len(tokens), len(top), number)
        elif submit.top_logprobs:
            for place in range(start, len(tokens)):
                yield from self._likeliest(number, place, tokens[place], logprobs[place], top[place])

    def _likeliest(self, number: int, place: int, token: int, logprob: float, top: dict[int, float]) -> Findings:
        submit = self._submits[number]
        if len(top) != submit.top_logprobs:
            yield Violation(f"top logprobs of output token {place}", submit.top_logprobs, len(top), number)
            return
        expected = top.get(token, logprob) if submit.open else max(top.values())
        if logprob != expected:
            yield Violation(f"logprob of output token {place}", expected, logprob, number)
