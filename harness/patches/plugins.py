"""Plugins of SGLang under test: a function without arguments that hooks what it wants changed."""

import importlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from harness.errors import RefusedConfiguration
from harness.patches.stack import file_named, parted

_called: set[str] = set()


def call_once(entry: str) -> None:
    """Call a plugin unless this process has.

    Raises RefusedConfiguration where it can't be loaded, and whatever it raises itself.
    """
    if entry not in _called:
        function_of(entry)()
        _called.add(entry)


def function_of(entry: str) -> Callable[[], object]:
    """The function that `module:function` or `file.py:function` names; raises RefusedConfiguration for none."""
    place, function = parted(entry)
    file, name = file_named(entry), function.removeprefix(":")
    try:
        module = _from_file(file) if file is not None else _imported(place)
    except Exception as error:
        raise RefusedConfiguration(f"plugin {entry} can't be loaded: {type(error).__name__}: {error}") from error
    found: Callable[[], object] | None = getattr(module, name, None)
    if not callable(found):
        raise RefusedConfiguration(f"plugin {entry}: {place} has no function {name}")
    return found


def _imported(name: str) -> ModuleType:
    here = str(Path.cwd())
    if here not in sys.path:  # a command's path hasn't it, unlike that of `python -m`
        sys.path.insert(0, here)
    return importlib.import_module(name)


def _from_file(file: Path) -> ModuleType:
    specification = importlib.util.spec_from_file_location(f"plugin_{file.stem}", file)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module
