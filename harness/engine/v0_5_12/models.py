"""Import the model classes that a configuration needs, instead of all: 6 s of a start on a slow core."""

import importlib
import os
import pkgutil
import sys

from harness.configuration import EngineConfig

PACKAGE = "sglang.srt.models"
REGISTRY = "sglang.srt.models.registry"
LEFT_OUT = "SGLANG_DISABLED_MODEL_ARCHS"
"""Names modules of `PACKAGE` that the registry shall not import (`import_model_classes`)."""
OF_LLAMA = frozenset({"llama", "llama_eagle3", "registry"})
"""What the built-in pair needs."""


def import_models(config: EngineConfig) -> None:
    """Fill SGLang's registry: with Llama for the built-in pair, with everything once another pair is asked for."""
    if config.models is not None and REGISTRY in sys.modules:
        _import_what_was_left_out()
    elif config.models is None and REGISTRY not in sys.modules:
        _import_llama()


def _import_llama() -> None:
    package = importlib.import_module(PACKAGE)
    names = {module.name for module in pkgutil.iter_modules(package.__path__)}
    before = os.environ.get(LEFT_OUT)
    os.environ[LEFT_OUT] = ",".join(sorted(names - OF_LLAMA))
    try:
        importlib.import_module(REGISTRY)
    finally:
        del os.environ[LEFT_OUT]
        if before is not None:
            os.environ[LEFT_OUT] = before


def _import_what_was_left_out() -> None:
    registry = importlib.import_module(REGISTRY)
    if len(registry.ModelRegistry.models) <= len(OF_LLAMA):
        registry.import_model_classes.cache_clear()
        registry.ModelRegistry.register(PACKAGE, overwrite=True)
