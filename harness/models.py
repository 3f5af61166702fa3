"""Which target and draft an engine loads: the built-in pair, or one given by path."""

import json
from itertools import chain
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from harness.configuration import EngineConfig, ModelPair
from harness.errors import RefusedConfiguration, UsageError
from harness.program import Program

BUILT_IN = ModelPair(
    target=Path(__file__).parents[1] / "fixtures/model_pair/target",
    draft=Path(__file__).parents[1] / "fixtures/model_pair/draft",
)
"""The tiny pair whose right answers are known in closed form."""

SHAPES = Path(__file__).parents[1] / "fixtures/shapes"
"""Folders of configurations without weights, of models of real size."""

WEIGHTS = ("*.safetensors", "*.bin", "*.pt")


def models_of(config: EngineConfig) -> ModelPair:
    """The configuration's models; raises RefusedConfiguration where one is missing, damaged or no EAGLE-3 draft."""
    pair = config.models or BUILT_IN
    _configuration_of(pair.target, pair.dummy_weights)
    if not config.speculative:
        return pair
    if pair.draft is None:
        raise RefusedConfiguration(f"worker {config.worker.value} needs a draft model: give one, or use worker none")
    architectures = _configuration_of(pair.draft, pair.dummy_weights).get("architectures", [])
    if not any("eagle3" in name.lower() for name in architectures):
        raise RefusedConfiguration(f"{pair.draft} is no EAGLE-3 draft: its architectures are {architectures}")
    return pair


def vocabulary_size(config: EngineConfig) -> int | None:
    """Number of token ids of the target, where its config.json says; raises RefusedConfiguration as `models_of`."""
    pair = models_of(config)
    size: int | None = _configuration_of(pair.target, pair.dummy_weights).get("vocab_size")
    return size


def check_tokens(program: Program, size: int | None) -> None:
    """Raise UsageError for a token id outside a vocabulary of `size`; on a GPU it would poison the process."""
    if size is None:
        return
    for submit in program.submits:
        asked = {"in a prompt": chain(*submit.prompts()), "in token_ids_logprob": submit.token_ids_logprob}
        for where, tokens in asked.items():
            if (largest := max(tokens, default=0)) >= size:
                raise UsageError(f"token id {largest} {where}: the target's vocabulary ends at {size - 1}")
        if submit.top_logprobs > size:
            raise UsageError(
                f"top_logprobs {submit.top_logprobs}: the target's vocabulary has {size} tokens, ask for no more"
            )


def shape(name: str) -> ModelPair:
    """The pair of a named shape, with dummy weights; raises RefusedConfiguration naming those there are."""
    if not (SHAPES / name / "target").is_dir():
        known = ", ".join(sorted(folder.name for folder in SHAPES.iterdir()))
        raise RefusedConfiguration(f"no shape {name}: there is {known}")
    return ModelPair(target=SHAPES / name / "target", draft=SHAPES / name / "draft", dummy_weights=True)


def _configuration_of(folder: Path, dummy_weights: bool) -> dict[str, Any]:
    weights = [file for pattern in WEIGHTS for file in folder.glob(pattern)]
    if not (folder / "config.json").is_file() or not (weights or dummy_weights):
        raise RefusedConfiguration(
            f"no model in {folder}: it must hold config.json and its weights (a local folder, not a hub name)"
        )
    try:
        for file in weights:
            if file.suffix == ".safetensors":
                with safe_open(file, framework="pt"):
                    pass
        content: dict[str, Any] = json.loads((folder / "config.json").read_text())
    except (SafetensorError, ValueError, OSError) as error:
        raise RefusedConfiguration(f"unreadable model in {folder}: {error}") from None
    return content
