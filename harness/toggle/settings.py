"""The toggle's settings, from environment variables."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from harness.toggle.policy import Policy

PREFIX = "SPEC_TOGGLE_"
THRESHOLD, HYSTERESIS, STRATEGY = (PREFIX + name for name in ("THRESHOLD", "HYSTERESIS", "STRATEGY"))
STRATEGIES = ("warm",)


class BadSetting(ValueError):
    """An environment variable that can't be meant; the message names it and says what to do."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What `SPEC_TOGGLE_THRESHOLD`, `SPEC_TOGGLE_HYSTERESIS` and `SPEC_TOGGLE_STRATEGY` say."""

    policy: Policy
    strategy: str = "warm"

    @classmethod
    def read(cls, environment: Mapping[str, str] = os.environ) -> Self | None:
        """The settings, or None where no threshold is set; raises BadSetting."""
        given = {name: value for name, value in environment.items() if name.startswith(PREFIX) and value}
        unknown = sorted(given.keys() - {THRESHOLD, HYSTERESIS, STRATEGY})
        if unknown:
            raise BadSetting(f"{unknown[0]} isn't a setting: there are {THRESHOLD}, {HYSTERESIS} and {STRATEGY}")
        if THRESHOLD not in given:
            return None
        strategy = given.get(STRATEGY, "warm")
        if strategy not in STRATEGIES:
            raise BadSetting(f"{STRATEGY}={strategy} isn't a strategy: there is {', '.join(STRATEGIES)}")
        threshold = _requests(given, THRESHOLD, least=1)
        hysteresis = _requests(given, HYSTERESIS, least=0)
        if hysteresis >= threshold:
            raise BadSetting(f"{HYSTERESIS}={hysteresis} must be smaller than {THRESHOLD}={threshold}")
        return cls(Policy(threshold, hysteresis), strategy)

    def environment(self) -> dict[str, str]:
        """The variables that say this."""
        return {
            THRESHOLD: str(self.policy.threshold),
            HYSTERESIS: str(self.policy.hysteresis),
            STRATEGY: self.strategy,
        }


def _requests(given: Mapping[str, str], name: str, least: int) -> int:
    text = given.get(name, "0")
    if not text.isascii() or not text.isdecimal() or int(text) < least:
        kind = "a positive number" if least else "a number"
        raise BadSetting(f"{name}={text} isn't {kind} of requests")
    return int(text)
