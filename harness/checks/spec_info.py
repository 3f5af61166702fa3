"""I6: what the next step drafts from belongs to the requests that it is for."""

from harness.checks.base import Check, Findings, Violation
from harness.observation import After, Launch


class SpecInfo(Check):
    """As many rows as requests, in their order.

    `EagleDraftInput.{topk_p,topk_index,hidden_states,bonus_tokens,future_indices}` (speculative/eagle_info.py). v1
    filters rows in the worker and `filter_batch` only cuts the rest off, so that a wrong order shows in the bonus
    tokens alone.
    """

    name = "I6-spec-info"

    def at_launch(self, launch: Launch) -> Findings:
        """Compare rows with requests, and in v1 bonus tokens with the last output tokens."""
        if not launch.speculative:
            return
        if launch.spec_rows is None:
            yield Violation("spec_info", "what to draft from", "None")
            return
        for name, rows in launch.spec_rows.items():
            if rows != len(launch.requests):
                yield Violation(f"rows of spec_info.{name}", len(launch.requests), rows)
        if launch.bonus_tokens is None or len(launch.bonus_tokens) != len(launch.requests):
            return
        for request, bonus in zip(launch.requests, launch.values("bonus_tokens"), strict=True):
            if bonus != request.output[-1]:
                yield Violation("spec_info.bonus_tokens", request.output[-1], bonus, request.number)

    def after_step(self, after: After) -> Findings:
        """Compare what a DECODE read with the token before those it gave: V2 knows it on the host only now."""
        step, running = after.step, {request.number: request for request in after.requests if not request.finished}
        for number, count in zip(step.requests, step.tokens_out, strict=True):
            request, token = running.get(number), after.read.get(number)
            if request is None or token is None or len(request.output) <= count:
                continue
            if token != request.output[-1 - count]:
                yield Violation("the token that a decode step read", request.output[-1 - count], token, number)
