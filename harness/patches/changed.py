"""The files of SGLang that diffs change, and those of them that a process runs with."""

import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path, PurePosixPath

from harness.patches.diffs import read
from harness.patches.reading import text_of
from harness.patches.stack import is_diff

TESTS = "sglang/test/"
"""No server has them."""


@cache
def changed_files(sources: tuple[str, ...]) -> tuple[str, ...]:
    """Below the folder that holds the package, in order, without tests and what is removed; raises as `diffs.read`."""
    diffs = [read(Path(entry)) for entry in sources if is_diff(entry)]
    paths = {path for diff in diffs for path in diff.files} - {path for diff in diffs for path in diff.removed}
    return tuple(str(path) for path in sorted(paths) if not str(path).startswith(TESTS))


def imported(sources: tuple[str, ...]) -> frozenset[str]:
    """Those that this process has imported."""
    return frozenset(file for file in changed_files(sources) if module_of(file) in sys.modules)


def module_of(file: str) -> str | None:
    """Its name for Python, None of what isn't Python."""
    path = PurePosixPath(file)
    if path.suffix != ".py":
        return None
    return ".".join(path.parent.parts if path.stem == "__init__" else path.with_suffix("").parts)


def sources_of(files: Sequence[str], folder: Path) -> dict[str, str]:
    """The text of Python files below a folder, by module; of those that are there."""
    named = {module_of(file): folder / file for file in files}
    return {module: text_of(path) for module, path in named.items() if module and path.is_file()}
