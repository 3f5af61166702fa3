"""Folders that a person names for what is going to be written."""

import tempfile
from pathlib import Path

from harness.errors import UsageError


def make_writable(what: str, folder: Path) -> None:
    """Make a folder, with its parents; raises UsageError, with what it is for, where no file can be made in it.

    The file that is tried has no name, so that others may try at the same time.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UsageError(f"{what} {folder}: {error.strerror}: give another folder") from None
