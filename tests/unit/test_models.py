"""Model folders are looked at before an engine boots: missing, damaged or unfit ones are refused by name."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from harness.configuration import EngineConfig, ModelPair, Worker
from harness.errors import RefusedConfiguration, UsageError
from harness.models import BUILT_IN, check_tokens, models_of, vocabulary_size
from harness.program import Program, Submit


@pytest.fixture
def pair(tmp_path: Path) -> ModelPair:
    """A copy of the built-in pair, to be spoilt."""
    assert BUILT_IN.draft is not None
    shutil.copytree(BUILT_IN.target, tmp_path / "target")
    shutil.copytree(BUILT_IN.draft, tmp_path / "draft")
    return ModelPair(target=tmp_path / "target", draft=tmp_path / "draft")


def refusal(pair: ModelPair, worker: Worker = Worker.V1) -> str:
    with pytest.raises(RefusedConfiguration) as raised:
        models_of(EngineConfig(worker=worker, models=pair))
    return str(raised.value)


def test_a_whole_pair_is_taken(pair: ModelPair) -> None:
    assert models_of(EngineConfig(models=pair)) == pair
    assert models_of(EngineConfig()) == BUILT_IN


def test_weights_in_another_format_are_left_to_sglang(pair: ModelPair) -> None:
    assert pair.draft is not None
    (pair.draft / "model.safetensors").unlink()
    torch.save({}, pair.draft / "pytorch_model.bin")
    assert models_of(EngineConfig(models=pair)) == pair


def test_missing(pair: ModelPair) -> None:
    (pair.target / "model.safetensors").unlink()
    assert refusal(pair, Worker.NONE).startswith(f"no model in {pair.target}")


def test_no_draft(pair: ModelPair) -> None:
    target_only = ModelPair(target=pair.target)
    assert "worker v1 needs a draft model" in refusal(target_only)
    assert models_of(EngineConfig(worker=Worker.NONE, models=target_only)) == target_only


def test_damaged_weights(pair: ModelPair) -> None:
    (pair.target / "model.safetensors").write_bytes(b"x" * 100)
    assert refusal(pair).startswith(f"unreadable model in {pair.target}: ")


def test_damaged_configuration(pair: ModelPair) -> None:
    (pair.target / "config.json").write_text("{")
    assert refusal(pair).startswith(f"unreadable model in {pair.target}: ")


def test_a_draft_that_is_no_eagle3(pair: ModelPair) -> None:
    assert pair.draft is not None
    config = pair.draft / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"architectures": ["LlamaForCausalLM"]}))
    assert "is no EAGLE-3 draft: its architectures are ['LlamaForCausalLM']" in refusal(pair)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"prompt": (0, 256)}, "token id 256 in a prompt: the target's vocabulary ends at 255"),
        ({"token_ids_logprob": (256,)}, "token id 256 in token_ids_logprob: the target's vocabulary ends at 255"),
        ({"top_logprobs": 257}, "top_logprobs 257: the target's vocabulary has 256 tokens"),
    ],
)
def test_what_is_beyond_the_vocabulary(asked: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        check_tokens(Program(operations=(Submit(logprobs=True, **asked),)), vocabulary_size(EngineConfig()))


def test_the_whole_vocabulary() -> None:
    submit = Submit(prompt=(0, 255), logprobs=True, token_ids_logprob=(255,), top_logprobs=256)
    check_tokens(Program(operations=(submit,)), vocabulary_size(EngineConfig()))
