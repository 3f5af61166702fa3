"""The policy: a threshold, exact, and hysteresis below it."""

import pytest

from harness.toggle.policy import Policy, Switch


def decisions(policy: Policy, sizes: list[int]) -> str:
    switch = Switch(policy)
    return "".join("s" if switch.speculates(size) else "p" for size in sizes)


def test_off_above_the_threshold_on_at_it() -> None:
    assert decisions(Policy(5), [1, 5, 6, 10, 6, 5, 1]) == "sspppss"


def test_hysteresis_keeps_a_hovering_batch_plain() -> None:
    assert decisions(Policy(5, hysteresis=2), [5, 6, 5, 4, 5, 6, 3, 4, 5, 6]) == "spppppsssp"


def test_reset_is_as_after_start() -> None:
    switch = Switch(Policy(5, hysteresis=2))
    assert not switch.speculates(6)
    assert not switch.speculates(5)
    switch.reset()
    assert switch.speculates(5)


@pytest.mark.parametrize(("threshold", "hysteresis"), [(0, 0), (-1, 0), (5, 5), (5, -1)])
def test_refused(threshold: int, hysteresis: int) -> None:
    with pytest.raises(ValueError, match="must be"):
        Policy(threshold, hysteresis)
