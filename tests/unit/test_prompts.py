"""The closed form of prompts, checked by its definition."""

import itertools

import pytest

from harness.prompts import (
    MAXIMUM_CONTEXT,
    PERIODS,
    VOCABULARY_SIZE,
    Prompt,
    base_ids,
    minimum_gap,
    proposable,
)


@pytest.mark.parametrize("period", [PERIODS[0], 7, 64, PERIODS[-1]])
def test_each_round_is_one_id_higher(period: int) -> None:
    ids = Prompt(period, seed=3, length=period + 2).sequence(MAXIMUM_CONTEXT)
    assert len(ids) == MAXIMUM_CONTEXT
    assert all(0 <= token < VOCABULARY_SIZE for token in ids)
    assert all((later - earlier) % VOCABULARY_SIZE == 1 for earlier, later in zip(ids, ids[period:], strict=False))


def test_tokens_are_the_start_of_the_sequence() -> None:
    prompt = Prompt(period=9, seed=1, length=20)
    assert prompt.tokens() == prompt.sequence(50)[:20]


def test_base_ids_keep_their_distance() -> None:
    for period in PERIODS:
        ids = sorted(base_ids(period, seed=0))
        gaps = [later - earlier for earlier, later in itertools.pairwise([*ids, ids[0] + VOCABULARY_SIZE])]
        assert len(set(ids)) == period
        assert min(gaps) >= minimum_gap(period)


def test_a_seed_always_gives_the_same_ids() -> None:
    """Cases on disk name prompts by seed: what a seed means may never change."""
    assert base_ids(7, 0) == (188, 223, 38, 255, 108, 142, 80)


def test_seeds_give_different_ids() -> None:
    assert len({base_ids(8, seed) for seed in range(200)}) == 200


@pytest.mark.parametrize(
    ("period", "seed", "length", "message"),
    [
        (PERIODS[0] - 1, 0, 20, "period must be 4 to 128, not 3"),
        (PERIODS[-1] + 1, 0, 200, "period must be 4 to 128, not 129"),
        (8, -1, 20, "seed must not be negative, as -1 is"),
        (8, 0, 9, "length of period 8 must be 10 to 1024, not 9"),
        (8, 0, MAXIMUM_CONTEXT + 1, "length of period 8 must be 10 to 1024, not 1025"),
    ],
)
def test_a_prompt_without_closed_form_is_refused(period: int, seed: int, length: int, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        Prompt(period, seed, length)


def test_every_fifth_id_is_a_hole() -> None:
    assert [token for token in range(12) if not proposable(token)] == [3, 8]
