"""I6: what the next step drafts from belongs to the requests that it is for."""

from harness.checks.base import Check, Findings, Violation
from harness.observation import After


class SpecInfo(Check):
    """As many rows as requests, in their order.

    `EagleDraftInput.{topk_p,topk_index,hidden_states,bonus_tokens,future_indices}` (speculative/eagle_info.py). v1 filters
    rows in the worker and `filter_batch` only cuts the rest off, so that a wrong order shows in the bonus tokens alone.
    """

    name = "I6-spec-info"

    def after_step(self, after: After) -> Findings:
        """Compare rows with requests, and in v1 bonus tokens with the last output tokens."""
        decoding = after.decoding
        if decoding is None or not decoding.speculative or not decoding.requests:
            return
        if decoding.spec_rows is None:
            yield Violation("spec_info", "what to draft from", "None")
            return
        for name, rows in decoding.spec_rows.items():
            if rows != len(decoding.requests):
                yield Violation(f"rows of spec_info.{name}", len(decoding.requests), rows)
                return
        if decoding.bonus_tokens is None:
            return
        for number, bonus, last in zip(
            decoding.requests, decoding.bonus_tokens.tolist(), decoding.last_tokens, strict=True
        ):
            if bonus != last:
                yield Violation("spec_info.bonus_tokens", last, bonus, number)
