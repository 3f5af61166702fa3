"""A checkout is the diff that makes it from the installed SGLang."""

import shutil
import subprocess
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.patches import checkout, overlay
from harness.patches.diffs import read
from tests.unit.patches.test_diffs import BEFORE, WORKER


@pytest.fixture
def mine(installed: Path, tmp_path: Path) -> Path:
    """The package of a checkout without changes."""
    return Path(shutil.copytree(installed, tmp_path / "mine" / "python" / "sglang"))


def patched(folder: Path) -> Path:
    return overlay.copy_with([read(checkout.as_diff(folder))]) / "sglang"


@pytest.mark.parametrize("place", ["python/sglang", "sglang", "."])
def test_changed_and_new_files(installed: Path, tmp_path: Path, place: str) -> None:
    package = tmp_path / "mine" / place
    shutil.copytree(installed, package)
    (package / WORKER).write_text("VALUE = 5")  # without a newline at its end
    (package / "srt/new.py").write_text("NEW = 1\n")
    (package / "srt/kernel.cuh").write_text("// new\n")
    (package / "README.md").write_text("no source\n")
    assert checkout.as_diff(tmp_path / "mine").name == "mine.diff"
    made = patched(tmp_path / "mine")
    assert (made / WORKER).read_text() == "VALUE = 5"
    assert (made / "srt/new.py").read_text() == "NEW = 1\n"
    assert (made / "srt/kernel.cuh").read_text() == "// new\n"
    assert (made / "__init__.py").is_symlink()
    assert not (made / "README.md").exists()


def test_empty_files(installed: Path, mine: Path) -> None:
    (installed / "srt/gone.py").touch()
    (mine / "srt/new").mkdir()
    (mine / "srt/new/__init__.py").touch()
    (mine / WORKER).write_text("")
    made = patched(mine.parents[1])
    assert (made / "srt/new/__init__.py").read_text() == ""
    assert (made / WORKER).read_text() == ""
    assert not (made / "srt/gone.py").exists()


def test_removed_files(installed: Path, mine: Path) -> None:
    """But for what only building writes."""
    (mine / WORKER).unlink()
    for file in ("_version.py", "srt/core.so"):
        (installed / file).write_text("built\n")
    made = patched(mine.parents[1])
    assert not (made / WORKER).exists()
    assert (made / "_version.py").read_text() == (made / "srt/core.so").read_text() == "built\n"


def test_carriage_returns_and_links_stay(installed: Path, mine: Path) -> None:
    (installed / WORKER).write_bytes(b"A = 1\r\nB = 1\r\n")
    (mine.parent / "elsewhere.py").write_bytes(b"A = 1\r\nB = 2\r\n")
    (mine / WORKER).unlink()
    (mine / WORKER).symlink_to(mine.parent / "elsewhere.py")
    assert (patched(mine.parents[1]) / WORKER).read_bytes() == b"A = 1\r\nB = 2\r\n"


CONFIGURATION = """
[color]
    ui = always
[diff]
    external = /bin/false
    mnemonicPrefix = true
    context = 0
[apply]
    ignoreWhitespace = change
"""


def test_whatever_a_person_has_set_for_git(mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (mine / WORKER).write_text(BEFORE.replace("batch", "requests", 1))
    plain = checkout.as_diff(mine.parents[1]).read_text()
    (tmp_path / ".gitconfig").write_text(CONFIGURATION)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / ".gitconfig"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", "/bin/false")
    for name, value in (("COUNT", "1"), ("KEY_0", "diff.suppressBlankEmpty"), ("VALUE_0", "true")):
        monkeypatch.setenv(f"GIT_CONFIG_{name}", value)
    subprocess.run(["git", "init", "--quiet", str(tmp_path / "repository")], check=True)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "repository" / ".git"))
    assert checkout.as_diff(mine.parents[1]).read_text() == plain
    assert "requests" in (patched(mine.parents[1]) / WORKER).read_text()


def test_lines_that_arent_text(mine: Path) -> None:
    (mine / WORKER).write_bytes(b"NAME = '\xe9'\n")
    with pytest.raises(UsageError, match=r"srt/worker\.py changes lines that aren't UTF-8: convert it, or give a diff"):
        checkout.as_diff(mine.parents[1])


def test_the_same_or_another_release(mine: Path) -> None:
    with pytest.raises(UsageError, match="holds SGLang as it is installed: there is nothing to test"):
        checkout.as_diff(mine.parents[1])
    (mine / WORKER).unlink()
    for number in range(checkout.MOST_FILES):
        (mine / f"srt/new_{number}.py").write_text(f"NUMBER = {number}\n")
    with pytest.raises(UsageError, match=r"differs from .* in 201 files, 1 of which it lacks: check out v"):
        checkout.as_diff(mine.parents[1])
