"""SGLang with diffs applied, as what this process imports: a private copy before the installed one on the path."""

import hashlib
import importlib
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from harness.errors import UsageError
from harness.patches.diffs import PACKAGE, Diff, installed_package, private_copy, read
from harness.patches.stack import is_diff

_entered: tuple[str, ...] | None = None
"""The sources that this process runs SGLang with, once it has decided."""


def enter(sources: tuple[str, ...]) -> None:
    """Let this process import SGLang with these sources, from now on.

    Raises UsageError for a diff that doesn't apply, and where the process runs SGLang with other sources already: what
    a process has imported it can't give back.
    """
    global _entered
    if sources == _entered:
        return
    if _entered is not None or (sources and PACKAGE in sys.modules):
        now = ", ".join(_entered or ()) or "as it is installed"
        raise UsageError(f"this process runs SGLang {now}; {', '.join(sources) or 'another'} needs one of its own")
    folder = copy_for(sources)
    if folder is not None:
        sys.path.insert(0, str(folder))
        importlib.invalidate_caches()
    _entered = sources


def copy_for(sources: tuple[str, ...]) -> Path | None:
    """The folder to import SGLang from with these sources, None where it is the installed; raises as `copy_with`."""
    diffs = [read(Path(entry)) for entry in sources if is_diff(entry)]
    return copy_with(diffs) if diffs else None


def copy_with(diffs: Sequence[Diff]) -> Path:
    """The folder to import the patched SGLang from; made once for the same diffs and the same SGLang, then kept.

    Raises UsageError where a diff doesn't apply or the cache can't be written, BrokenPatch for a syntax error.
    """
    installed = installed_package()
    place = cache() / "patched" / _key(installed, diffs)
    if place.is_dir():
        return place
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(prefix=".", dir=place.parent))
    except OSError as error:
        raise UsageError(f"{place.parent}: {error.strerror}: set XDG_CACHE_HOME to another folder") from None
    try:
        private_copy(installed, diffs, unfinished)
        unfinished.rename(place)
    except OSError as error:
        if not place.is_dir():  # else another process was quicker
            raise UsageError(f"{unfinished}: {error.strerror}: no room for a patched copy of SGLang") from None
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return place


def kept(kind: str, content: str, *names: str) -> Path:
    """A file of the cache with this content, whole, by these names in a folder of the content's own.

    Raises UsageError where the cache can't be written.
    """
    data = content.encode("utf-8")
    place = cache().joinpath(kind, hashlib.sha256(data).hexdigest()[:16], *names)
    unfinished = place.with_name(f".{os.getpid()}.{place.name}")  # others may be reading, or writing, the same
    try:
        if place.is_file() and place.read_bytes() == data:
            return place
        place.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_bytes(data)
        unfinished.replace(place)
    except OSError as error:
        raise UsageError(f"{place}: {error.strerror}: set XDG_CACHE_HOME to another folder") from None
    return place


def cache() -> Path:
    """The folder for what may be kept between runs, and made again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sglang-toggle-harness"


def _key(installed: Path, diffs: Sequence[Diff]) -> str:
    """Of all that decides the copy's content: the files that it doesn't share, and what is done to them."""
    parts = [str(installed).encode(), version(PACKAGE).encode()]
    for path in sorted({path for diff in diffs for path in diff.files}):
        file = installed.parent / path
        parts += [str(path).encode(), file.read_bytes() if file.is_file() else b""]
    parts += [diff.text.encode() for diff in diffs]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]
