"""Private copies of SGLang: made once, kept, and never what is installed."""

import subprocess
import sys
from pathlib import Path

import pytest

from harness.errors import BrokenPatch, UsageError
from harness.patches import checkout, overlay
from harness.patches.diffs import read
from tests.unit.patches.test_diffs import BEFORE, CHANGE, hashes

WORKER = "srt/worker.py"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    package = tmp_path / "installed" / "sglang"
    (package / "srt").mkdir(parents=True)
    for file in ("__init__.py", "srt/__init__.py", WORKER):
        (package / file).write_text(BEFORE)
    monkeypatch.setattr(overlay, "installed_package", lambda: package)
    monkeypatch.setattr(checkout, "installed_package", lambda: package)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return package


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


@pytest.mark.parametrize("place", ["python/sglang", "sglang", "."])
def test_a_checkout_is_the_diff_that_makes_it(installed: Path, tmp_path: Path, place: str) -> None:
    package = tmp_path / "mine" / place
    (package / "srt").mkdir(parents=True)
    (package / "__init__.py").write_text(BEFORE)
    (package / "srt/__init__.py").write_text(BEFORE)
    (package / WORKER).write_text("VALUE = 5")  # without a newline at its end
    (package / "srt/new.py").write_text("NEW = 1\n")
    (package / "srt/notes.json").write_text("{}")  # of the repository, not packaged
    diff = checkout.as_diff(tmp_path / "mine")
    assert diff.name == "mine.diff"
    patched = overlay.copy_with([read(diff)]) / "sglang"
    assert (patched / WORKER).read_text() == "VALUE = 5"
    assert (patched / "srt/new.py").read_text() == "NEW = 1\n"
    assert (patched / "__init__.py").is_symlink()


def test_a_checkout_that_is_the_same_or_another_release(installed: Path, tmp_path: Path) -> None:
    package = tmp_path / "mine" / "python" / "sglang"
    (package / "srt").mkdir(parents=True)
    (package / WORKER).write_text(BEFORE)
    with pytest.raises(UsageError, match="holds SGLang as it is installed: there is nothing to test"):
        checkout.as_diff(tmp_path / "mine")
    for number in range(checkout.MOST_FILES + 1):
        (package / f"srt/new_{number}.py").write_text(f"NUMBER = {number}\n")
    with pytest.raises(UsageError, match=r"differs from the installed SGLang in 201 files: check out v"):
        checkout.as_diff(tmp_path / "mine")


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
