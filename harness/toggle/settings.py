"""The toggle's settings, from environment variables."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from harness.toggle.policy import Policy

PREFIX = "SPEC_TOGGLE_"
NAMES = THRESHOLD, HYSTERESIS, STRATEGY, KEPT = tuple(
    PREFIX + name for name in ("THRESHOLD", "HYSTERESIS", "STRATEGY", "KEPT_TOKENS")
)
STRATEGIES = ("warm", "plain")
KEPT_TOKENS = 128
"""Of Llama-3.1-8B in 16 bits 3 MiB a request."""


class BadSetting(ValueError):
    """An environment variable that can't be meant; the message names it and says what to do."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the `SPEC_TOGGLE_` variables say."""

    policy: Policy
    strategy: str = "warm"
    kept_tokens: int = KEPT_TOKENS
    """Of strategy plain: plain steps of a request whose hidden states are kept for the draft to catch up."""

    @classmethod
    def read(cls, environment: Mapping[str, str] = os.environ) -> Self | None:
        """The settings, or None where no threshold is set; raises BadSetting."""
        given = {name: value for name, value in environment.items() if name.startswith(PREFIX) and value}
        unknown = sorted(given.keys() - set(NAMES))
        if unknown:
            raise BadSetting(f"{unknown[0]} isn't a setting: there are {', '.join(NAMES)}")
        if THRESHOLD not in given:
            return None
        strategy = given.get(STRATEGY, "warm")
        if strategy not in STRATEGIES:
            raise BadSetting(f"{STRATEGY}={strategy} isn't a strategy: there is {', '.join(STRATEGIES)}")
        threshold = _number(given, THRESHOLD, "requests", least=1)
        hysteresis = _number(given, HYSTERESIS, "requests")
        if hysteresis >= threshold:
            raise BadSetting(f"{HYSTERESIS}={hysteresis} must be smaller than {THRESHOLD}={threshold}")
        if KEPT not in given:
            return cls(Policy(threshold, hysteresis), strategy)
        if strategy != "plain":
            raise BadSetting(f"{KEPT} is for {STRATEGY}=plain: strategy {strategy} keeps nothing")
        return cls(Policy(threshold, hysteresis), strategy, _number(given, KEPT, "tokens", least=1))

    def environment(self) -> dict[str, str]:
        """The variables that say this."""
        return {
            THRESHOLD: str(self.policy.threshold),
            HYSTERESIS: str(self.policy.hysteresis),
            STRATEGY: self.strategy,
            **({KEPT: str(self.kept_tokens)} if self.strategy == "plain" else {}),
        }


def _number(given: Mapping[str, str], name: str, of: str, least: int = 0) -> int:
    text = given.get(name, "0")
    if not text.isascii() or not text.isdecimal() or int(text) < least:
        kind = "a positive number" if least else "a number"
        raise BadSetting(f"{name}={text} isn't {kind} of {of}")
    return int(text)
