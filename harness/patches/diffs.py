"""Unified diffs against SGLang's source: read, checked, and applied to a copy, never to the installed package."""

import importlib.util
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from unidiff.errors import UnidiffParseError
from unidiff.patch import PatchedFile, PatchInfo, PatchSet

from harness.errors import BrokenPatch, UsageError
from harness.patches import git
from harness.patches.reading import text_of

PACKAGE = "sglang"
IN_REPOSITORY = "python"
"""SGLang's repository has the package in this folder."""
NOWHERE = "/dev/null"
NO_TEXT = re.compile(r"(?:new file mode|deleted file mode|index \S+) 1[26]0000$")
"""What git's header says of a link and of a submodule."""


@dataclass(frozen=True, slots=True)
class Diff:
    """One diff, its paths brought into one form: `a/sglang/...` and `b/sglang/...`."""

    name: str
    text: str
    files: tuple[PurePosixPath, ...]
    """Below the folder that holds the package, e.g. `sglang/srt/managers/scheduler.py`."""
    removed: frozenset[PurePosixPath]
    """Those of them that are gone in the end."""


def read(file: Path) -> Diff:
    """A diff; raises UsageError for what is none, is empty, or touches files outside SGLang."""
    parts = [part for part in _parsed(file) if not _has_mode_alone(part)]
    if not parts:
        raise UsageError(f"{file} isn't a unified diff, or changes nothing: make one with `git diff`")
    paths = [_adapted(file, part) for part in parts]
    # A series of commits in one file can have a path several times: the last part decides.
    gone = {path: part.target_file == NOWHERE for path, part in zip(paths, parts, strict=True)}
    removed = frozenset(path for path, removes in gone.items() if removes)
    return Diff(file.name, "".join(map(str, parts)), tuple(gone), removed)


def heading(path: PurePosixPath, *, added: bool = False, removed: bool = False) -> str:
    """Git's header of a file's part: it alone says that an empty file is new or gone, or that an emptied one stays."""
    mode = "new file mode 100644\n" * added + "deleted file mode 100644\n" * removed
    return f"diff --git a/{path} b/{path}\n{mode}"


def _parsed(file: Path) -> PatchSet:
    text = text_of(file)
    if text.count("\r\n") == text.count("\n"):  # of the whole diff, by an editor: those of files have headers without
        text = text.replace("\r\n", "\n")
    try:
        return PatchSet(text)
    except UnidiffParseError as error:
        raise UsageError(f"{file} isn't a unified diff: {' '.join(str(error).split())}") from None


def _has_mode_alone(part: PatchedFile) -> bool:
    """Whether all that it changes is who may execute a file, which makes no difference to an import."""
    more = part or part.is_rename or part.is_binary_file
    return not more and any(line.startswith("new mode ") for line in part.patch_info or ())


def _adapted(file: Path, part: PatchedFile) -> PurePosixPath:
    """Bring a file's part into the one form, and return its path; raises UsageError for what isn't for `git apply`."""
    if part.is_rename:
        raise UsageError(f"{file} renames {part.path}: make it with `git diff --no-renames`")
    if part.is_binary_file or any(NO_TEXT.match(line) for line in part.patch_info or ()):
        raise UsageError(f"{file} changes what isn't a text file: {part.path}")
    path = _inside(file, part.path)
    added = part.source_file == NOWHERE or (part.is_added_file and _never(part.source_timestamp))
    removed = part.target_file == NOWHERE or (part.is_removed_file and _never(part.target_timestamp))
    if not part and not added and not removed:  # a merge's diff is in a form of its own
        raise UsageError(f"{file} doesn't say what changes in {path}: make it with `git diff OLD NEW`")
    by_git = (part.patch_info or [""])[0].startswith("diff --git ")
    part.patch_info = PatchInfo([heading(path, added=added, removed=removed)]) if by_git else None
    part.source_file = NOWHERE if added else f"a/{path}"
    part.target_file = NOWHERE if removed else f"b/{path}"
    return path


def _never(timestamp: str | None) -> bool:
    """Whether it is the beginning of Unix time: `diff -N` gives it to a file that isn't there."""
    return (timestamp or "").startswith(("1970-01-01 ", "1969-12-31 "))


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
    done = git.run(["apply", "--whitespace=nowarn", "--no-ignore-whitespace", "-p1", "-"], folder, diff.text)
    if done.returncode:
        raise UsageError(f"{diff.name} doesn't apply to SGLang as it is installed: {git.complaint(done)}")
    for path in diff.files:  # git says nothing of a file that a series of commits adds and removes again, and keeps it
        if (folder / path).exists() == (path in diff.removed):
            left = "is still there" if path in diff.removed else "is missing"
            raise UsageError(f"{diff.name} leaves SGLang wrong, {path} {left}: make it with one `git diff OLD NEW`")


def _check_syntax(file: Path) -> None:
    if file.suffix != ".py" or not file.exists():
        return
    try:
        compile(file.read_bytes(), str(file), "exec")  # which decodes as an import does
    except SyntaxError as error:
        where = f" in line {error.lineno}" if error.lineno else ""
        raise BrokenPatch(f"the patched {file.name} has a syntax error{where}: {error.msg}") from None
