"""A folder with a modified SGLang, as the diff that makes it from the installed one."""

import filecmp
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path, PurePosixPath

from harness.errors import UsageError
from harness.patches import git
from harness.patches.diffs import IN_REPOSITORY, NOWHERE, PACKAGE, heading, installed_package
from harness.patches.overlay import kept

MOST_FILES = 200
"""A patch changes fewer; two releases differ in more."""
SOURCES = (".py", ".cu", ".cuh", ".h", ".hpp", ".cpp", ".json", ".yaml")
BUILT = {PurePosixPath("_version.py")}
"""What a wheel has and a repository hasn't, or has of another build; all other sources of a wheel are its repository's,
every one of them, tests and tuned configurations too."""
COMPARED = ["diff", "--no-index", "--text", "--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "-U3", "--"]


def as_diff(folder: Path) -> Path:
    """A file with the diff: it changes, adds and removes Python, C++, CUDA, JSON and YAML as the folder has it.

    Whatever else differs stays as it is installed: compiled extensions, which a repository hasn't, and documents.
    Raises UsageError where the folder holds no SGLang, the same, or another release, for lines that aren't UTF-8, and
    where the cache can't be written.
    """
    package, installed = _package(folder), installed_package()
    changed = _changed(package, installed)
    if not changed:
        raise UsageError(f"{folder} holds SGLang as it is installed: there is nothing to test")
    if len(changed) > MOST_FILES:
        missing = sum(not (package / path).exists() for path in changed)
        raise UsageError(
            f"{folder} differs from the installed SGLang in {len(changed)} files, {missing} of which it lacks: "
            f"check out v{version(PACKAGE)}, all of it, or give a diff"
        )
    text = "".join(_difference(installed / path, package / path, PACKAGE / path) for path in changed)
    return kept("checkouts", text, f"{folder.resolve().name}.diff")


def _package(folder: Path) -> Path:
    for place in (folder / IN_REPOSITORY / PACKAGE, folder / PACKAGE, folder):
        if (place / "srt").is_dir():
            return place
    raise UsageError(f"{folder} holds no SGLang: give a checkout of its repository, with {IN_REPOSITORY}/{PACKAGE}")


def _changed(package: Path, installed: Path) -> list[PurePosixPath]:
    paths = {*_sources(package), *_sources(installed)} - BUILT
    return sorted(path for path in paths if not _same(package / path, installed / path))


def _sources(package: Path) -> Iterator[PurePosixPath]:
    for file in package.rglob("*"):
        if file.suffix in SOURCES and file.is_file():
            yield PurePosixPath(file.relative_to(package).as_posix())


def _same(file: Path, installed: Path) -> bool:
    try:
        return file.exists() and installed.exists() and filecmp.cmp(file, installed, shallow=False)
    except OSError as error:
        raise UsageError(f"{error.filename}: {error.strerror}") from None


def _difference(old: Path, new: Path, path: PurePosixPath) -> str:
    """One file's part of the diff, by git, which minds a missing newline at the end."""
    compared = [str(file.resolve()) if file.exists() else NOWHERE for file in (old, new)]  # what links lead to
    done = git.run([*COMPARED, *compared])
    if done.returncode > 1:
        raise UsageError(f"{new} can't be compared: {git.complaint(done)}")
    try:
        _, start, hunks = done.stdout.decode("utf-8").partition("\n@@")
    except UnicodeDecodeError:
        raise UsageError(f"{new} changes lines that aren't UTF-8: convert it, or give a diff without it") from None
    head = heading(path, added=not old.exists(), removed=not new.exists())
    if not start:  # an empty file
        return head
    source, target = f"a/{path}" if old.exists() else NOWHERE, f"b/{path}" if new.exists() else NOWHERE
    return f"{head}--- {source}\n+++ {target}\n@@{hunks}"
