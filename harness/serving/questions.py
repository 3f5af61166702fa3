"""Requests in the model pair's own language, and how their answers are judged."""

from dataclasses import dataclass

from harness.configuration import EngineConfig
from harness.oracle import answer_to, first_difference
from harness.program import Submit
from harness.prompts import Prompt

PERIODS = (9, 14, 23, 31, 47)
BEYOND_PERIOD = 3
"""Tokens of a prompt after its first period, unless a length is given; 2 settle what follows."""


@dataclass(frozen=True, slots=True)
class Question:
    """A request and its right answer; None where only the number of its tokens is known."""

    submit: Submit
    prompt: tuple[int, ...]
    answer: tuple[int, ...] | None

    def problem(self, tokens: list[int]) -> str | None:
        """What is wrong with an answer; None if nothing is."""
        if self.answer is None:
            wanted = self.submit.max_new_tokens
            return None if len(tokens) == wanted else f"{len(tokens)} tokens, must be {wanted}"
        if tuple(tokens) == self.answer:
            return None
        different = first_difference(tokens, self.answer)
        return f"wrong from output token {different}: {len(tokens)} tokens, must be {len(self.answer)}"


class Questions(list[Question]):
    """What is asked, in order."""

    @classmethod
    def of(cls, config: EngineConfig, count: int, max_new_tokens: int) -> "Questions":
        """Requests of prompts a little longer than their period, with the closed form's answers."""
        made = cls()
        for number in range(count):
            period = PERIODS[number % len(PERIODS)]
            prompt = Prompt(period=period, seed=number, length=period + BEYOND_PERIOD)
            made.append(_question(config, prompt, max_new_tokens, known=True))
        return made

    @classmethod
    def of_length(
        cls, config: EngineConfig, prompt_tokens: int, lengths: list[int], first_seed: int, known: bool
    ) -> "Questions":
        """Requests with prompts of the same length, answered with so many tokens each.

        Unless `known`, any tokens are right. Seeds count up from `first_seed`: another one shares no prefix.
        """
        periods = [period for period in PERIODS if period + 2 <= prompt_tokens]
        made = cls()
        for number, length in enumerate(lengths):
            period = periods[number % len(periods)]
            prompt = Prompt(period=period, seed=first_seed + number, length=prompt_tokens)
            made.append(_question(config, prompt, length, known))
        return made


LEAST_PROMPT = PERIODS[0] + 2
"""Tokens of the shortest prompt that a question can have."""


def _question(config: EngineConfig, prompt: Prompt, max_new_tokens: int, known: bool) -> Question:
    submit = Submit(prompt=prompt, max_new_tokens=max_new_tokens)
    answer = answer_to(config, submit, prompt).tokens if known else None
    return Question(submit, prompt.tokens(), answer)
