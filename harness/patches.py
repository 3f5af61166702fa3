"""Patches under test that come with the harness, by name: `warm`, the three attempts and the seeded faults.

Each but `warm` is a file `cases/NAME/patch.py` with one function, `worker(toggled)`: it is given the worker class that
the fixed toggle would have installed and returns the class to install instead. An attempt returns a class of its own
making, a fault the toggled class with a mistake in it.
"""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.errors import RefusedConfiguration

CASES = Path(__file__).parents[1] / "cases"
UNCHANGED = "warm"
"""The fixed toggle, as it is."""
PATCH_FILE = "patch.py"

WorkerOf = Callable[[type], type]


def names() -> list[str]:
    """Every built-in patch."""
    return [UNCHANGED, *sorted(file.parent.name for file in CASES.glob(f"*/{PATCH_FILE}"))]


def check(name: str) -> None:
    """Raise RefusedConfiguration, naming those there are, where there is no such patch."""
    if name not in names():
        raise RefusedConfiguration(f"no patch {name}: there are {', '.join(names())}")


def worker_of(name: str) -> WorkerOf:
    """The function of a built-in patch; raises RefusedConfiguration where there is none, or it can't be loaded."""
    check(name)
    if name == UNCHANGED:
        return lambda toggled: toggled
    file = CASES / name / PATCH_FILE
    found = _load(name, file)
    if not callable(getattr(found, "worker", None)):
        raise RefusedConfiguration(f"{file} has no function `worker(toggled)`")
    worker: WorkerOf = found.worker
    return worker


def _load(name: str, file: Path) -> Any:
    specification = importlib.util.spec_from_file_location(f"cases.{name.replace('-', '_')}", file)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    try:
        specification.loader.exec_module(module)
    except Exception as error:
        raise RefusedConfiguration(f"patch {name} can't be loaded: {type(error).__name__}: {error}") from error
    return module
