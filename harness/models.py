"""Which target and draft an engine loads: the built-in pair, or one given by path."""

from pathlib import Path

from harness.configuration import EngineConfig, ModelPair
from harness.errors import RefusedConfiguration

BUILT_IN = ModelPair(
    target=Path(__file__).parents[1] / "fixtures/model_pair/target",
    draft=Path(__file__).parents[1] / "fixtures/model_pair/draft",
)
"""The tiny pair whose right answers are known in closed form."""


def models_of(config: EngineConfig) -> ModelPair:
    """The configuration's models; raises RefusedConfiguration where one is missing or incomplete."""
    pair = config.models or BUILT_IN
    if config.speculative and pair.draft is None:
        raise RefusedConfiguration(f"worker {config.worker.value} needs a draft model: give one, or use worker none")
    for folder in filter(None, (pair.target, pair.draft if config.speculative else None)):
        if not (folder / "config.json").is_file() or not any(folder.glob("*.safetensors")):
            raise RefusedConfiguration(
                f"no model in {folder}: it must hold config.json and *.safetensors (a local folder, not a hub name)"
            )
    return pair
