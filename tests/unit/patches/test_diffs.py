"""Diffs against SGLang's source: what they may be, and that they touch a private copy only."""

import hashlib
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.patches.diffs import Diff, private_copy, read

BEFORE = "def decode(batch):\n    return batch\n\n\ndef verify(batch):\n    return batch\n"
CHANGE = "--- a/{path}\n+++ b/{path}\n@@ -1,3 +1,3 @@\n def decode(batch):\n-    return batch\n+    return {what}\n \n"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    package = tmp_path / "installed" / "sglang"
    for file in ("__init__.py", "srt/__init__.py", "srt/worker.py", "srt/managers/scheduler.py", "lang/api.py"):
        (package / file).parent.mkdir(parents=True, exist_ok=True)
        (package / file).write_text(BEFORE)
    return package


def diff(folder: Path, text: str, name: str = "my.diff") -> Diff:
    (folder / name).write_text(text)
    return read(folder / name)


def hashes(package: Path) -> dict[str, str]:
    files = (file for file in package.rglob("*") if file.is_file())
    return {str(file.relative_to(package)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


@pytest.mark.parametrize("root", ["python/sglang", "sglang"])
def test_applied_to_a_copy_and_nowhere_else(source: Path, tmp_path: Path, root: str) -> None:
    before = hashes(source)
    change = diff(tmp_path, CHANGE.format(path=f"{root}/srt/worker.py", what="None"))
    folder = private_copy(source, [change], tmp_path / "copy")
    patched = folder / "sglang"
    assert "return None" in (patched / "srt/worker.py").read_text()
    assert (patched / "srt/managers/scheduler.py").read_text() == BEFORE
    assert (patched / "lang").is_symlink()
    assert hashes(source) == before


def test_new_and_removed_files(source: Path, tmp_path: Path) -> None:
    new = "--- /dev/null\n+++ b/python/sglang/srt/spec/toggle.py\n@@ -0,0 +1 @@\n+THRESHOLD = 5\n"
    gone = "--- a/sglang/lang/api.py\n+++ /dev/null\n@@ -1,6 +0,0 @@\n" + "".join(
        f"-{x}\n" for x in BEFORE.splitlines()
    )
    folder = private_copy(source, [diff(tmp_path, new + gone)], tmp_path / "copy")
    assert (folder / "sglang/srt/spec/toggle.py").read_text() == "THRESHOLD = 5\n"
    assert not (folder / "sglang/lang/api.py").exists()
    assert (source / "lang/api.py").exists()


def test_diffs_stack_in_order(source: Path, tmp_path: Path) -> None:
    one = diff(tmp_path, CHANGE.format(path="sglang/srt/worker.py", what="1"), "one.diff")
    two = diff(
        tmp_path,
        CHANGE.format(path="sglang/srt/worker.py", what="2").replace("return batch", "return 1", 1),
        "two.diff",
    )
    folder = private_copy(source, [one, two], tmp_path / "copy")
    assert "return 2" in (folder / "sglang/srt/worker.py").read_text()
    with pytest.raises(UsageError, match=r"two.diff doesn't apply to SGLang as it is installed: patch failed"):
        private_copy(source, [two, one], tmp_path / "other")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "isn't a unified diff, or changes nothing"),
        ("hello\nworld\n", "isn't a unified diff, or changes nothing"),
        ("--- a/sglang/x.py\n+++ b/sglang/x.py\n@@ -1,9 +1,9 @@\n hello\n", "isn't a unified diff: "),
        (CHANGE.format(path="sgl-kernel/x.py", what="1"), "outside SGLang: its paths must begin with python/sglang/"),
        (CHANGE.format(path="sglang/../../etc/passwd", what="1"), "outside SGLang"),
        (CHANGE.format(path="python/setup.py", what="1"), "changes python/setup.py, outside SGLang"),
    ],
)
def test_what_is_no_diff_for_sglang(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        diff(tmp_path, text)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file or directory"):
        read(tmp_path / "no.diff")


def test_a_syntax_error(source: Path, tmp_path: Path) -> None:
    broken = diff(tmp_path, CHANGE.format(path="sglang/srt/worker.py", what="(("))
    with pytest.raises(UsageError, match=r"the patched worker.py has a syntax error in line 2"):
        private_copy(source, [broken], tmp_path / "copy")
