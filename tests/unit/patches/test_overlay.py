"""Private copies of SGLang: made once, kept, and never what is installed."""

import subprocess
import sys
from pathlib import Path

import pytest

from harness.errors import BrokenPatch, UsageError
from harness.patches import overlay
from harness.patches.diffs import read
from tests.unit.patches.test_diffs import BEFORE, CHANGE, WORKER, hashes


def change(folder: Path, what: str) -> Path:
    (folder / "my.diff").write_text(CHANGE.format(path=f"sglang/{WORKER}", what=what))
    return folder / "my.diff"


def test_a_copy_is_made_once_for_the_same_content(installed: Path, tmp_path: Path) -> None:
    before = hashes(installed)
    file = change(tmp_path, "1")
    one = overlay.copy_with([read(file)])
    (one / "kept").touch()
    assert overlay.copy_with([read(file)]) == one
    assert (one / "kept").exists()
    assert overlay.copy_with([read(change(tmp_path, "2"))]) != one
    (installed / WORKER).write_text(BEFORE + "\n\nMORE = 1\n")
    assert overlay.copy_with([read(change(tmp_path, "1"))]) != one
    (installed / WORKER).write_text(BEFORE)
    assert hashes(installed) == before


def test_nothing_is_kept_of_a_copy_that_cant_be_made(installed: Path, tmp_path: Path) -> None:
    with pytest.raises(BrokenPatch, match=r"the patched worker\.py has a syntax error in line 2"):
        overlay.copy_with([read(change(tmp_path, ")"))])
    (installed / WORKER).write_text("def other():\n    pass\n")
    with pytest.raises(UsageError, match=r"my\.diff doesn't apply to SGLang as it is installed"):
        overlay.copy_with([read(change(tmp_path, "1"))])
    assert list((overlay.cache() / "patched").iterdir()) == []


def test_a_cache_that_cant_be_written(installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(UsageError, match="set XDG_CACHE_HOME to another folder"):
        overlay.copy_with([read(change(tmp_path, "1"))])


PROCESS = """
import sys
from harness.errors import UsageError
from harness.patches import overlay
overlay.installed_package = lambda: __import__("pathlib").Path(sys.argv[1])
overlay.enter((sys.argv[2],))
from sglang.srt import worker
assert worker.decode(1) == 7, worker.__file__
overlay.enter((sys.argv[2],))
try:
    overlay.enter(())
except UsageError as error:
    print(error)
"""


def test_a_process_has_one_of_them(installed: Path, tmp_path: Path) -> None:
    file = change(tmp_path, "7")
    for init in ("__init__.py", "srt/__init__.py"):
        (installed / init).write_text("")
    command = [sys.executable, "-c", PROCESS, str(installed), str(file)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said.strip() == f"this process runs SGLang {file}; another needs one of its own"
