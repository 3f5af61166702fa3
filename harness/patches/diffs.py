"""Unified diffs against SGLang's source: read, checked, and applied to a copy, never to the installed package."""

import importlib.util
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from unidiff.errors import UnidiffParseError
from unidiff.patch import PatchSet

from harness.errors import BrokenPatch, UsageError

PACKAGE = "sglang"
IN_REPOSITORY = "python"
"""SGLang's repository has the package in this folder."""
NOWHERE = "/dev/null"


@dataclass(frozen=True, slots=True)
class Diff:
    """One diff, its paths brought into one form: `a/sglang/...` and `b/sglang/...`."""

    name: str
    text: str
    files: tuple[PurePosixPath, ...]
    """Below the folder that holds the package, e.g. `sglang/srt/managers/scheduler.py`."""


def read(file: Path) -> Diff:
    """A diff; raises UsageError for what is none, is empty, or touches files outside SGLang."""
    try:
        parsed = PatchSet(file.read_text())
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}") from None
    except (UnidiffParseError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} isn't a unified diff: {' '.join(str(error).split())}") from None
    if not parsed:
        raise UsageError(f"{file} isn't a unified diff, or changes nothing: make one with `git diff`")
    files = []
    for changed in parsed:
        if changed.is_binary_file or changed.is_rename:
            raise UsageError(f"{file} renames, or changes a file that isn't text: {changed.path}")
        path = _inside(file, changed.path)
        changed.source_file = changed.source_file if changed.is_added_file else f"a/{path}"
        changed.target_file = changed.target_file if changed.is_removed_file else f"b/{path}"
        changed.patch_info = None  # git's header, with the paths as they were
        files.append(path)
    return Diff(file.name, str(parsed), tuple(files))


def _inside(file: Path, path: str) -> PurePosixPath:
    """A path of a diff, below the folder that holds the package, whichever root the diff was made in."""
    parts = PurePosixPath(path).parts
    start = 1 if parts[:1] == (IN_REPOSITORY,) else 0
    if parts[start : start + 1] != (PACKAGE,) or ".." in parts:
        raise UsageError(
            f"{file} changes {path}, outside SGLang: its paths must begin with {IN_REPOSITORY}/{PACKAGE}/ or {PACKAGE}/"
        )
    return PurePosixPath(*parts[start:])


def installed_package() -> Path:
    """The folder of the installed SGLang, found without importing it; raises UsageError where there is none."""
    found = importlib.util.find_spec(PACKAGE)
    if found is None or not found.submodule_search_locations:
        raise UsageError("SGLang isn't installed here: see `toggle-harness doctor`")
    return Path(found.submodule_search_locations[0])


def private_copy(source: Path, diffs: Sequence[Diff], folder: Path) -> Path:
    """Make `folder` one from which `import sglang` is `source` with the diffs applied, in order; returns it.

    Only the folders that lead to a changed file are made; all others are links into `source`, which stays as it is.
    Raises UsageError naming the diff that doesn't apply, and where.
    """
    changed = {path for diff in diffs for path in diff.files}
    _mirror(source, folder / PACKAGE, PurePosixPath(PACKAGE), changed)
    for diff in diffs:
        _apply(diff, folder)
    for path in changed:
        _check_syntax(folder / path)
    return folder


def _mirror(source: Path, target: Path, path: PurePosixPath, changed: set[PurePosixPath]) -> None:
    target.mkdir(parents=True)
    on_the_way = {parent for file in changed for parent in file.parents}
    for entry in source.iterdir() if source.is_dir() else ():
        place = path / entry.name
        if place in changed:
            shutil.copyfile(entry, target / entry.name)
        elif place in on_the_way and entry.is_dir():
            _mirror(entry, target / entry.name, place, changed)
        elif entry.name != "__pycache__":
            (target / entry.name).symlink_to(entry)


def _apply(diff: Diff, folder: Path) -> None:
    """With git, outside any repository: it refuses what fits only nearly."""
    command = ["git", "apply", "--whitespace=nowarn", "-p1", "-"]
    try:
        done = subprocess.run(
            command,
            input=diff.text,
            cwd=folder,
            env={**os.environ, "GIT_CEILING_DIRECTORIES": str(folder.parent), "LC_ALL": "C"},
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        raise UsageError("applying a diff needs git: install it") from None
    if done.returncode:
        said = "; ".join(line.removeprefix("error: ") for line in done.stderr.splitlines()[:3])
        raise UsageError(f"{diff.name} doesn't apply to SGLang as it is installed: {said}")


def _check_syntax(file: Path) -> None:
    if file.suffix != ".py" or not file.exists():
        return
    try:
        compile(file.read_text(), str(file), "exec")
    except SyntaxError as error:
        raise BrokenPatch(f"the patched {file.name} has a syntax error in line {error.lineno}: {error.msg}") from None
