"""Environment variables as a person sets them, rightly and wrongly."""

import pytest

from harness.toggle.policy import Policy
from harness.toggle.settings import BadSetting, Settings


def test_nothing_set_is_no_toggle() -> None:
    assert Settings.read({}) is None
    assert Settings.read({"SPEC_TOGGLE_THRESHOLD": ""}) is None
    assert Settings.read({"SPEC_TOGGLE_HYSTERESIS": "2"}) is None


def test_defaults() -> None:
    assert Settings.read({"SPEC_TOGGLE_THRESHOLD": "5"}) == Settings(Policy(5), "warm")


def test_there_and_back() -> None:
    for settings in (Settings(Policy(8, hysteresis=3), "warm"), Settings(Policy(2), "plain", kept_tokens=7)):
        assert Settings.read(settings.environment()) == settings


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"SPEC_TOGGLE_THRESHOLD": "0"}, "SPEC_TOGGLE_THRESHOLD=0 isn't a positive number of requests"),
        ({"SPEC_TOGGLE_THRESHOLD": "-3"}, "SPEC_TOGGLE_THRESHOLD=-3 isn't a positive number"),
        ({"SPEC_TOGGLE_THRESHOLD": "five"}, "SPEC_TOGGLE_THRESHOLD=five isn't a positive number"),
        ({"SPEC_TOGGLE_THRESHOLD": "5.0"}, "SPEC_TOGGLE_THRESHOLD=5.0 isn't a positive number"),
        ({"SPEC_TOGGLE_THRESHOLD": "5", "SPEC_TOGGLE_HYSTERESIS": "x"}, "SPEC_TOGGLE_HYSTERESIS=x isn't a number"),
        ({"SPEC_TOGGLE_THRESHOLD": "5", "SPEC_TOGGLE_HYSTERESIS": "5"}, "must be smaller than SPEC_TOGGLE_THRESHOLD=5"),
        ({"SPEC_TOGGLE_THRESHOLD": "5", "SPEC_TOGGLE_STRATEGY": "cold"}, "SPEC_TOGGLE_STRATEGY=cold isn't a strategy"),
        (
            {"SPEC_TOGGLE_THRESHOLD": "5", "SPEC_TOGGLE_KEPT_TOKENS": "9"},
            "KEPT_TOKENS is for SPEC_TOGGLE_STRATEGY=plain",
        ),
        (
            {"SPEC_TOGGLE_THRESHOLD": "5", "SPEC_TOGGLE_STRATEGY": "plain", "SPEC_TOGGLE_KEPT_TOKENS": "0"},
            "SPEC_TOGGLE_KEPT_TOKENS=0 isn't a positive number of tokens",
        ),
        ({"SPEC_TOGGLE_TRESHOLD": "5"}, "SPEC_TOGGLE_TRESHOLD isn't a setting: there are SPEC_TOGGLE_THRESHOLD"),
    ],
)
def test_refused(environment: dict[str, str], message: str) -> None:
    with pytest.raises(BadSetting, match=message):
        Settings.read(environment)
