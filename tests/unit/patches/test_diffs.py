"""Diffs against SGLang's source: what they may be, and that they touch a private copy only."""

import hashlib
import subprocess
from pathlib import Path, PurePosixPath

import pytest

from harness.errors import UsageError
from harness.patches import git
from harness.patches.diffs import Diff, private_copy, read

WORKER = "srt/worker.py"
GIT = "diff --git a/sglang/{0} b/sglang/{1}\n"
BEFORE = "def decode(batch):\n    return batch\n\n\ndef verify(batch):\n    return batch\n"
ALL_GONE = "".join(f"-{line}\n" for line in BEFORE.splitlines())
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


NEW_EMPTY = "diff --git a/python/{0} b/python/{0}\nnew file mode 100644\nindex 0000000..e69de29\n"
GONE_EMPTY = "diff --git a/python/{0} b/python/{0}\ndeleted file mode 100644\nindex e69de29..0000000\n"


@pytest.mark.parametrize(
    "beside", ["", GIT.format(WORKER, WORKER) + CHANGE.format(path=f"sglang/{WORKER}", what="None")]
)
def test_empty_files_new_and_removed(source: Path, tmp_path: Path, beside: str) -> None:
    (source / "srt/empty.py").touch()
    new, gone = "sglang/srt/spec/__init__.py", "sglang/srt/empty.py"
    made = diff(tmp_path, NEW_EMPTY.format(new) + GONE_EMPTY.format(gone) + beside)
    assert made.removed == {PurePosixPath(gone)}
    folder = private_copy(source, [made], tmp_path / "copy")
    assert (folder / new).read_text() == ""
    assert not (folder / gone).exists()
    assert ("return None" in (folder / "sglang/srt/worker.py").read_text()) == bool(beside)


def test_an_empty_file_that_is_there_isnt_new(source: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"my.diff doesn't apply .*sglang/lang/api.py: already exists"):
        private_copy(source, [diff(tmp_path, NEW_EMPTY.format("sglang/lang/api.py"))], tmp_path / "copy")


@pytest.mark.parametrize("header", ["diff --git a/{0} b/{0}\nindex 1234567..e69de29 100644\n", ""])
def test_emptied_and_filled_files_stay(source: Path, tmp_path: Path, header: str) -> None:
    (source / "srt/empty.py").touch()
    emptied, filled = "python/sglang/lang/api.py", "python/sglang/srt/empty.py"
    one = f"{header.format(emptied)}--- a/{emptied}\n+++ b/{emptied}\n@@ -1,6 +0,0 @@\n{ALL_GONE}"
    two = f"{header.format(filled)}--- a/{filled}\n+++ b/{filled}\n@@ -0,0 +1 @@\n+FILLED = 1\n"
    folder = private_copy(source, [diff(tmp_path, one + two)], tmp_path / "copy")
    assert (folder / "sglang/lang/api.py").read_text() == ""
    assert (folder / "sglang/srt/empty.py").read_text() == "FILLED = 1\n"


def test_a_diff_without_git_that_adds_and_removes(source: Path, tmp_path: Path) -> None:
    """`diff -urN` says it by the beginning of Unix time."""
    then, now = "1970-01-01 01:00:00.000000000 +0100", "2026-01-01 00:00:00.000000000 +0100"
    new, gone = "python/sglang/srt/new.py", "python/sglang/lang/api.py"
    one = f"diff -urN a/{new} b/{new}\n--- a/{new}\t{then}\n+++ b/{new}\t{now}\n@@ -0,0 +1 @@\n+NEW = 1\n"
    two = f"diff -urN a/{gone} b/{gone}\n--- a/{gone}\t{now}\n+++ b/{gone}\t{then}\n@@ -1,6 +0,0 @@\n{ALL_GONE}"
    folder = private_copy(source, [diff(tmp_path, one + two)], tmp_path / "copy")
    assert (folder / "sglang/srt/new.py").read_text() == "NEW = 1\n"
    assert not (folder / "sglang/lang/api.py").exists()


def test_a_series_of_commits_in_one_diff(source: Path, tmp_path: Path) -> None:
    new = "--- /dev/null\n+++ b/sglang/srt/{0}.py\n@@ -0,0 +1 @@\n+A = 1\n"
    changed = "--- a/sglang/srt/one.py\n+++ b/sglang/srt/one.py\n@@ -1 +1 @@\n-A = 1\n+A = 2\n"
    series = diff(tmp_path, new.format("one") + changed)
    folder = private_copy(source, [series], tmp_path / "copy")
    assert (folder / "sglang/srt/one.py").read_text() == "A = 2\n"
    gone = "--- a/sglang/srt/two.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-A = 1\n"
    series = diff(tmp_path, new.format("two") + gone)
    with pytest.raises(UsageError, match=r"my.diff leaves SGLang wrong, sglang/srt/two.py is still there: make it"):
        private_copy(source, [series], tmp_path / "other")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (NEW_EMPTY.format("sglang/srt/new.py"), "sglang/srt/new.py is missing"),
        (GONE_EMPTY.format("sglang/lang/api.py"), "sglang/lang/api.py is still there"),
    ],
)
def test_a_git_that_leaves_something_out(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    done = subprocess.CompletedProcess([], 0, b"", b"")
    monkeypatch.setattr(git, "run", lambda *_: done)
    with pytest.raises(UsageError, match=f"my.diff leaves SGLang wrong, {message}"):
        private_copy(source, [diff(tmp_path, text)], tmp_path / "copy")


def test_carriage_returns(source: Path, tmp_path: Path) -> None:
    """A file's are content; a whole diff's are an editor's."""
    (source / "srt/dos.py").write_bytes(b"A = 1\r\n")
    text = "--- a/sglang/srt/dos.py\n+++ b/sglang/srt/dos.py\n@@ -1 +1 @@\n-A = 1\r\n+A = 2\r\n"
    (tmp_path / "dos.diff").write_bytes(text.encode())
    change = CHANGE.format(path="sglang/srt/worker.py", what="None")
    (tmp_path / "mailed.diff").write_bytes(change.replace("\n", "\r\n").encode())
    diffs = [read(tmp_path / name) for name in ("dos.diff", "mailed.diff")]
    folder = private_copy(source, diffs, tmp_path / "copy")
    assert (folder / "sglang/srt/dos.py").read_bytes() == b"A = 2\r\n"
    assert "return None" in (folder / "sglang/srt/worker.py").read_text()


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
        (GIT.format("x.py", "x.py") + "old mode 100644\nnew mode 100755\n", "or changes nothing"),
        (
            GIT.format("x.py", "y.py") + "old mode 100644\nnew mode 100755\nsimilarity index 100%\n",
            "renames sglang/y.py: make it with `git diff --no-renames`",
        ),
        (
            GIT.format("x.py", "x.py") + "new file mode 120000\n--- /dev/null\n+++ b/sglang/x.py\n@@ -0,0 +1 @@\n+y\n",
            "changes what isn't a text file: sglang/x.py",
        ),
        (
            GIT.format("x.so", "x.so") + "new file mode 100644\nBinary files /dev/null and b/sglang/x.so differ\n",
            "changes what isn't a text file: sglang/x.so",
        ),
        (
            "diff --cc sglang/x.py\n--- a/sglang/x.py\n+++ b/sglang/x.py\n@@@ -1,1 -1,1 +1,1 @@@\n++a\n",
            "doesn't say what changes in sglang/x.py: make it with `git diff OLD NEW`",
        ),
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
