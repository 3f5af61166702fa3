"""The model pair's properties on large samples, and against Hugging Face's Llama. Minutes."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from fixtures.model_pair.checkpoint import HOME
from fixtures.model_pair.damage import Damage
from fixtures.model_pair.measure import changed_by_one_slot, changed_by_position, draft_exactness, target_exactness
from fixtures.model_pair.pair import Pair, sequences
from harness.prompts import MAXIMUM_CONTEXT, PERIODS

pytestmark = pytest.mark.slow

LEAST_MARGIN = 3.0
DTYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)


@DTYPES
def test_no_wrong_token_in_a_million(dtype: torch.dtype) -> None:
    pair, count = Pair.load(dtype), 0
    for period in PERIODS:
        margins = target_exactness(pair, period, seeds=10, context=MAXIMUM_CONTEXT)
        assert margins.min() > LEAST_MARGIN, period
        count += len(margins)
    assert count > 1_000_000


@DTYPES
def test_draft_is_exact_for_every_period(dtype: torch.dtype) -> None:
    pair = Pair.load(dtype)
    for period in PERIODS:
        unequal, _, least_margin = draft_exactness(pair, period, seeds=2, context=300, depth=7)
        assert unequal == 0, period
        assert least_margin > LEAST_MARGIN, period


@pytest.mark.parametrize("kind", Damage)
def test_damage_shows_for_every_period(kind: Damage) -> None:
    """Almost always: a lookup that fails still answers something, which one time in some hundreds is right."""
    pair = Pair.load()
    shares = torch.tensor([changed_by_one_slot(pair, period, period + 2, 8, kind) for period in PERIODS])
    assert (shares.mean(0) > 0.99).all()


@pytest.mark.parametrize("offset", [-1, 1])
def test_a_position_off_by_one_shows_for_every_period(offset: int) -> None:
    pair = Pair.load()
    for period in PERIODS:
        assert changed_by_position(pair, period, period + 2, 8, offset) == 1.0, period


LOGITS_OF_TRANSFORMERS = """
import sys
import torch
from transformers import LlamaForCausalLM

folder, ids, logits = sys.argv[1:]
reference = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="sdpa")
with torch.no_grad():
    torch.save(reference(torch.load(ids)).logits, logits)
"""


def test_target_is_the_llama_of_transformers(tmp_path: Path) -> None:
    """In a process of its own: where SGLang has been imported transformers leaves RoPE's frequencies uninitialised."""
    ids = sequences(20, range(4), 300)
    torch.save(ids, tmp_path / "ids")
    arguments = (HOME / "target", tmp_path / "ids", tmp_path / "logits")
    subprocess.run([sys.executable, "-c", LOGITS_OF_TRANSFORMERS, *map(str, arguments)], check=True)
    expected = torch.load(tmp_path / "logits")
    torch.testing.assert_close(Pair.load().target(ids).logits, expected, rtol=1e-5, atol=1e-4)
