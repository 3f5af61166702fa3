"""What the harness relies on in the built-in model pair, each property on a small sample."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from fixtures.model_pair.architecture import HOT_IDS, Shape
from fixtures.model_pair.build import build, digests
from fixtures.model_pair.checkpoint import HOME, load_draft
from fixtures.model_pair.damage import (
    Damage,
    draft_lengths,
    live_slots,
    target_answers_change,
    target_answers_change_by_position,
)
from fixtures.model_pair.measure import draft_exactness, target_exactness
from fixtures.model_pair.pair import Pair, holds, sequences
from harness.prompts import proposable

MAXIMUM_BYTES = 2_000_000
LEAST_MARGIN = 3.0
CASES = 8
DTYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
PERIOD_AND_CUT = pytest.mark.parametrize(("period", "cut"), [(4, 6), (24, 100), (128, 130)])


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """The models are too small for more: threads would wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def pair() -> Pair:
    return Pair.load()


@DTYPES
@pytest.mark.parametrize("period", [4, 24, 65, 128])
def test_target_continues_every_prompt_rightly(period: int, dtype: torch.dtype) -> None:
    margins = target_exactness(Pair.load(dtype), period, seeds=4, context=260)
    assert len(margins) == 4 * (260 - period - 2)
    assert margins.min() > LEAST_MARGIN


@DTYPES
@pytest.mark.parametrize("period", [4, 24, 128])
def test_draft_is_accepted_as_the_closed_form_says(period: int, dtype: torch.dtype) -> None:
    """Chains of seven steps, longer than a period of four: later steps look up entries that earlier ones wrote."""
    unequal, count, least_margin = draft_exactness(Pair.load(dtype), period, seeds=4, context=160, depth=7)
    assert count > 0
    assert unequal == 0
    assert least_margin > LEAST_MARGIN


def test_draft_cannot_propose_the_holes() -> None:
    """Without holes every step would be accepted whole, and acceptance would prove little."""
    assert all(proposable(token) for token in HOT_IDS)
    assert holds(torch.tensor([2, 3, 4])).tolist() == [True, False, True]


@pytest.mark.parametrize("kind", Damage)
@PERIOD_AND_CUT
def test_a_damaged_live_slot_of_the_target_changes_tokens(pair: Pair, period: int, cut: int, kind: Damage) -> None:
    ids = sequences(period, range(CASES), cut + period + 1)
    slots = _one_live_slot(period, cut)
    assert not target_answers_change(pair, ids, cut, period, None, slots).any()
    assert target_answers_change(pair, ids, cut, period, kind, slots).all()


def test_a_damaged_dead_slot_of_the_target_changes_nothing(pair: Pair) -> None:
    period, cut = 8, 60
    ids = sequences(period, range(CASES), cut + period + 1)
    dead = torch.full((CASES, 1), live_slots(cut, period).start - 1)
    assert not target_answers_change(pair, ids, cut, period, Damage.ZEROED, dead).any()


@PERIOD_AND_CUT
def test_a_position_off_by_one_changes_tokens(pair: Pair, period: int, cut: int) -> None:
    ids = sequences(period, range(CASES), cut + period + 1)
    assert not target_answers_change_by_position(pair, ids, cut, period, 0).any()
    for offset in (-1, 1):
        assert target_answers_change_by_position(pair, ids, cut, period, offset).all()


@pytest.mark.parametrize("kind", Damage)
@PERIOD_AND_CUT
def test_a_damaged_live_slot_of_the_draft_changes_acceptance(pair: Pair, period: int, cut: int, kind: Damage) -> None:
    ids = sequences(period, range(CASES), cut + period + 6)
    slots = _one_live_slot(period, cut)
    right = draft_lengths(pair, ids, cut, period, None, slots)
    damaged = draft_lengths(pair, ids, cut, period, kind, slots)
    read_for_a_hole = ~holds(ids.gather(1, slots + period + 1))[:, 0]
    assert not read_for_a_hole.all()
    assert ((damaged != right).any(-1) | read_for_a_hole).all()


@PERIOD_AND_CUT
def test_acceptance_collapses_when_all_live_slots_are_damaged(pair: Pair, period: int, cut: int) -> None:
    ids = sequences(period, range(CASES), cut + period + 6)
    slots = torch.tensor(live_slots(cut, period)).expand(CASES, -1)
    intact = draft_lengths(pair, ids, cut, period, None, slots)[:, :-1].float().mean()
    assert intact > 1.5
    for kind in (Damage.ZEROED, Damage.OTHER_REQUEST):
        assert draft_lengths(pair, ids, cut, period, kind, slots)[:, :-1].float().mean() < 0.1


def test_committed_weights_are_what_the_script_builds(tmp_path: Path) -> None:
    """Bit for bit, twice: the script has no hidden input."""
    build(tmp_path / "first")
    build(tmp_path / "second")
    assert digests(tmp_path / "first") == digests(tmp_path / "second") == digests(HOME)
    for name in ("target", "draft"):
        assert (tmp_path / "first" / name / "config.json").read_text() == (HOME / name / "config.json").read_text()


def test_the_pair_is_small() -> None:
    files = [path for name in ("target", "draft") for path in (HOME / name).iterdir()]
    assert len(files) == 4
    assert sum(path.stat().st_size for path in files) < MAXIMUM_BYTES


def test_configurations_describe_the_weights(pair: Pair) -> None:
    shape = Shape()
    target, draft = (json.loads((HOME / name / "config.json").read_text()) for name in ("target", "draft"))
    for config in (target, draft):
        assert (config["num_attention_heads"], config["head_dim"]) == (shape.head_count, shape.head_size)
        assert (config["hidden_size"], config["intermediate_size"]) == (shape.hidden_size, shape.intermediate_size)
    assert target["num_hidden_layers"] == len(pair.target.model.layers)
    assert target["vocab_size"] == pair.target.lm_head.out_features
    assert draft["draft_vocab_size"] == pair.draft.lm_head.out_features
    # SGLang captures layer id + 1, which must exist, and sizes the draft's input for three layers.
    aux_layers = draft["eagle_config"]["eagle_aux_hidden_state_layer_ids"]
    assert len(aux_layers) == 3
    assert max(aux_layers) + 1 < target["num_hidden_layers"]


def test_a_draft_of_another_vocabulary_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build(tmp_path)
    monkeypatch.setattr("fixtures.model_pair.checkpoint.HOT_IDS", tuple(range(1, len(HOT_IDS) + 1)))
    with pytest.raises(ValueError, match="doesn't match the ids"):
        load_draft(tmp_path / "draft")


def _one_live_slot(period: int, cut: int) -> torch.Tensor:
    """Another live slot for each case, (CASES, 1)."""
    live = live_slots(cut, period)
    return torch.tensor([[live[case * (len(live) - 1) // (CASES - 1)]] for case in range(CASES)])
