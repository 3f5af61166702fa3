"""Which files diffs change, and which of them a process has imported."""

import sys
from pathlib import Path
from types import ModuleType

import pytest

from harness.patches.changed import changed_files, imported, module_of

PART = "--- {old}\n+++ {new}\n@@ -{minus} +{plus} @@\n{lines}\n"
CHANGED = PART.format(old="a/sglang/srt/a.py", new="b/sglang/srt/a.py", minus="1", plus="1", lines="-one\n+two")
ADDED = PART.format(old="/dev/null", new="b/sglang/srt/b/__init__.py", minus="0,0", plus="1", lines="+new")
REMOVED = PART.format(old="a/sglang/srt/c.py", new="/dev/null", minus="1", plus="0,0", lines="-old")
KERNEL = PART.format(old="a/sglang/jit/d.cuh", new="b/sglang/jit/d.cuh", minus="1", plus="1", lines="-one\n+two")
TEST = PART.format(old="a/sglang/test/e.py", new="b/sglang/test/e.py", minus="1", plus="1", lines="-one\n+two")


@pytest.fixture
def sources(tmp_path: Path) -> tuple[str, ...]:
    (tmp_path / "one.diff").write_text(CHANGED + ADDED + REMOVED)
    (tmp_path / "two.diff").write_text(KERNEL + TEST)
    return str(tmp_path / "one.diff"), "mine.hooks:register", str(tmp_path / "two.diff")


def test_files_that_a_server_may_run(sources: tuple[str, ...]) -> None:
    assert changed_files(sources) == ("sglang/jit/d.cuh", "sglang/srt/a.py", "sglang/srt/b/__init__.py")
    assert changed_files(("mine.hooks:register",)) == ()


def test_those_that_were_imported(sources: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    assert imported(sources) == frozenset()
    monkeypatch.setitem(sys.modules, "sglang.srt.b", ModuleType("sglang.srt.b"))
    assert imported(sources) == {"sglang/srt/b/__init__.py"}


def test_names_of_modules() -> None:
    files = ("sglang/srt/a.py", "sglang/srt/b/__init__.py", "sglang/jit/d.cuh")
    assert [module_of(file) for file in files] == ["sglang.srt.a", "sglang.srt.b", None]
