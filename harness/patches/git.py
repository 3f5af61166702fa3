"""Git as a tool: on files alone, outside any repository, whatever a person has set for it."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from harness.errors import UsageError

ALONE = {"GIT_DIR": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "LC_ALL": "C"}
"""Git before 2.32 reads a person's configuration all the same: options that matter are given to the command, too."""


def run(arguments: Sequence[str], folder: Path | None = None, given: str = "") -> subprocess.CompletedProcess[bytes]:
    """What git says, in bytes, since text would lose carriage returns; raises UsageError where there is no git."""
    # A hook, `git difftool` or an alias leaves variables that would lead git elsewhere.
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        return subprocess.run(
            ["git", *arguments],
            input=given.encode("utf-8"),
            cwd=folder,
            env=inherited | ALONE,
            capture_output=True,
            check=False,
        )
    except FileNotFoundError:
        raise UsageError("diffs need git: install it") from None


def complaint(done: subprocess.CompletedProcess[bytes]) -> str:
    """What git said was wrong, in one line."""
    lines = done.stderr.decode("utf-8", "replace").splitlines()
    return "; ".join(line.removeprefix("error: ") for line in lines[:3])
