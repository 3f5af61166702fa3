"""Patches of the toggled worker: those that come with the harness, by name, or any by the path of its file.

By name there are `warm`, the three attempts and the seeded faults. Each but `warm` is a file `cases/NAME/patch.py` with
one function, `worker(toggled)`: it is given the worker class that the fixed toggle would have installed and returns the
class to install instead. An attempt returns a class of its own making, a fault the toggled class with a mistake in it.
A patch's constants `WORKER` and `STRATEGY` say which worker and which of the toggle's strategies it was written for.
"""

import ast
import importlib.util
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

from harness.configuration import Strategy, Worker
from harness.errors import RefusedConfiguration, UsageError
from harness.patches.reading import text_of
from harness.patches.stack import PYTHON, UNCHANGED, Patch, worker

CASES = Path(__file__).parents[2] / "cases"
PATCH_FILE = "patch.py"

WorkerOf = Callable[[type], type]


def names() -> list[str]:
    """Every built-in patch."""
    return [UNCHANGED, *sorted(file.parent.name for file in CASES.glob(f"*/{PATCH_FILE}"))]


def file_of(name: str) -> Path | None:
    """A patch's file, None of the fixed toggle; raises RefusedConfiguration, naming those there are, for none."""
    if name.endswith(PYTHON):
        if not Path(name).is_file():
            raise RefusedConfiguration(f"no patch {name}: no such file")
        return Path(name)
    if name not in names():
        raise RefusedConfiguration(f"no patch {name}: there are {', '.join(names())}, or give a file's path")
    return None if name == UNCHANGED else CASES / name / PATCH_FILE


def written_for(patch: Patch) -> Worker | None:
    """The worker that a patch is for, read without loading SGLang; None of one that is for any.

    Raises RefusedConfiguration where it says something else.
    """
    found: Worker | None = _constant(patch, "WORKER", (Worker.V1, Worker.V2))
    return found


def strategy_of(patch: Patch) -> Strategy:
    """The strategy that a patch is for, read without loading SGLang; warm of one that doesn't say.

    Raises RefusedConfiguration where it says something else.
    """
    found: Strategy = _constant(patch, "STRATEGY", get_args(Strategy)) or "warm"
    return found


def worker_of(name: str) -> WorkerOf:
    """The function of a built-in patch; raises RefusedConfiguration where there is none, or it can't be loaded."""
    file = file_of(name)
    if file is None:
        return lambda toggled: toggled
    found = _load(name, file)
    if not callable(getattr(found, "worker", None)):
        raise RefusedConfiguration(f"{file} has no function `worker(toggled)`")
    worker: WorkerOf = found.worker
    return worker


def _constant(patch: Patch, constant: str, allowed: tuple[Any, ...]) -> Any:
    """The one of the allowed that a constant is; None where it is None, or there is none."""
    name = worker(patch)
    file = None if name is None else file_of(name)
    if name is None or file is None:
        return None
    literals = {repr(one): one for one in allowed}
    said = _assigned(_parsed(name, file), constant)
    if said not in {*literals, "None"}:  # a name too: what it stands for only loading SGLang would say
        raise RefusedConfiguration(f"{file}: {constant} is {said}: write {' or '.join(literals)}, or leave it out")
    return literals.get(said)


def _assigned(module: ast.Module, constant: str) -> str:
    """What a module's constant is, as Python's `repr` writes it."""
    for node in module.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if constant in map(ast.unparse, targets):
                return ast.unparse(node.value)
    return "None"


def _parsed(name: str, file: Path) -> ast.Module:
    try:
        return ast.parse(text_of(file))
    except (UsageError, SyntaxError, ValueError) as error:  # the last of a null byte, before Python 3.12
        raise RefusedConfiguration(f"patch {name} can't be read: {error}") from None


def _load(name: str, file: Path) -> Any:
    specification = importlib.util.spec_from_file_location(f"cases.{re.sub(r'[^0-9A-Za-z]', '_', name)}", file)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    try:
        specification.loader.exec_module(module)
    except Exception as error:
        raise RefusedConfiguration(f"patch {name} can't be loaded: {type(error).__name__}: {error}") from error
    return module
