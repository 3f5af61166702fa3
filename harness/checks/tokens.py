"""I9: every step gives every request its tokens, and gives them to whoever listens."""

from harness.checks.base import Check, Findings, Violation
from harness.observation import After
from harness.oracle import first_difference
from harness.program import Program


class Tokens(Check):
    """At least one token a decode step for a request that goes on, exactly one in a plain step, and all streamed.

    `Req.output_ids` (managers/schedule_batch.py) against `BatchTokenIDOutput.output_ids` (managers/io_struct.py), which
    `stream_output_generation` (managers/scheduler_output_processor_mixin.py) sends on.
    """

    name = "I9-tokens"

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self._ended: set[int] = set()

    def after_step(self, after: After) -> Findings:
        """Count the tokens of the step, and compare what was streamed with what the scheduler keeps."""
        step, running = after.step, {request.number: request for request in after.requests if not request.finished}
        decoded = step.spec or step.plain
        for number, count in zip(step.requests, step.tokens_out, strict=True):
            request = running.get(number)
            least, most = int(decoded and request is not None), 1 if step.plain else None
            if number not in self._ended and (count < least or (most is not None and count > most)):
                kind = "plain" if step.plain else "spec"
                yield Violation(f"tokens in a {kind} step", least if most is None else most, count, number)
            if request is not None and after.streamed[number] != request.output:
                streamed = after.streamed[number]
                place = first_difference(streamed, request.output)
                seen = f"{len(streamed)} tokens, another from token {place} on"
                yield Violation("what was streamed", f"{len(request.output)} tokens kept", seen, number)
        self._ended |= after.ended.keys()
