"""A folder with a modified SGLang, as the diff that makes it from the installed one."""

import filecmp
import hashlib
import subprocess
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path, PurePosixPath

from harness.errors import UsageError
from harness.patches.diffs import IN_REPOSITORY, NOWHERE, PACKAGE, installed_package
from harness.patches.overlay import cache

MOST_FILES = 200
"""A patch changes fewer; two releases differ in more."""
SOURCES = (".py", ".cu", ".cuh", ".h", ".cpp", ".json")


def as_diff(folder: Path) -> Path:
    """A file with the diff; raises UsageError where the folder holds no SGLang, the same, or another release.

    Files that only the installed package has stay: a wheel has some that a repository hasn't.
    """
    package, installed = _package(folder), installed_package()
    changed = [path for path in _sources(package) if not _same(package / path, installed / path)]
    if not changed:
        raise UsageError(f"{folder} holds SGLang as it is installed: there is nothing to test")
    if len(changed) > MOST_FILES:
        raise UsageError(
            f"{folder} differs from the installed SGLang in {len(changed)} files: check out v{version(PACKAGE)}"
        )
    text = "".join(_difference(installed, package, path) for path in changed)
    place = cache() / "checkouts" / hashlib.sha256(text.encode()).hexdigest()[:16] / f"{folder.resolve().name}.diff"
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    except OSError as error:
        raise UsageError(f"{place}: {error.strerror}: set XDG_CACHE_HOME to another folder") from None
    return place


def _package(folder: Path) -> Path:
    for place in (folder / IN_REPOSITORY / PACKAGE, folder / PACKAGE, folder):
        if (place / "srt").is_dir():
            return place
    raise UsageError(f"{folder} holds no SGLang: give a checkout of its repository, with {IN_REPOSITORY}/{PACKAGE}")


def _sources(package: Path) -> Iterator[PurePosixPath]:
    for file in sorted(package.rglob("*")):
        if file.suffix in SOURCES and file.is_file():
            yield PurePosixPath(file.relative_to(package).as_posix())


def _same(file: Path, installed: Path) -> bool:
    if not installed.is_file():
        return file.suffix != ".py"  # data that isn't packaged
    return filecmp.cmp(file, installed, shallow=False)


def _difference(installed: Path, package: Path, path: PurePosixPath) -> str:
    """One file's part of the diff, by git, which minds a missing newline at the end."""
    old = installed / path
    command = ["git", "diff", "--no-index", "--text", "--", str(old) if old.is_file() else NOWHERE, str(package / path)]
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    except FileNotFoundError:
        raise UsageError("comparing a checkout needs git: install it") from None
    hunks = said[said.index("\n@@") + 1 :]
    source = f"a/{PACKAGE}/{path}" if old.is_file() else NOWHERE
    return f"--- {source}\n+++ b/{PACKAGE}/{path}\n{hunks}"
