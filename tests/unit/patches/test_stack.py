"""What a patch's text means, and which stacks there can be."""

import re
from pathlib import Path

import pytest

from harness.configuration import EngineConfig, Toggle
from harness.errors import UsageError
from harness.patches.beside import files, local, patch_beside
from harness.patches.given import patch_of
from harness.patches.stack import UNCHANGED, file_named, is_plugin, sources, title, without_worker, worker
from harness.patches.workers import CASES
from harness.program import Program

CHANGE = "--- a/sglang/srt/x.py\n+++ b/sglang/srt/x.py\n@@ -1 +1 @@\n-a\n+b\n"


@pytest.mark.parametrize(
    ("patch", "changes", "installed"),
    [
        (UNCHANGED, (), UNCHANGED),
        ("attempt-1", (), "attempt-1"),
        ("mine/patch.py", (), "mine/patch.py"),
        ("a.diff", ("a.diff",), None),
        ("a.patch", ("a.patch",), None),
        ("package.module:register", ("package.module:register",), None),
        (("a.diff", "plugin.py:register"), ("a.diff", "plugin.py:register"), None),
        (("a.diff", UNCHANGED), ("a.diff",), UNCHANGED),
        ("/x/10:30/a.diff", ("/x/10:30/a.diff",), None),
        ("/x/10:30/patch.py", (), "/x/10:30/patch.py"),
    ],
)
def test_what_it_is_made_of(patch: str | tuple[str, ...], changes: tuple[str, ...], installed: str | None) -> None:
    assert sources(patch) == changes
    assert worker(patch) == installed
    assert without_worker(patch) == (changes or UNCHANGED)


def test_a_path_may_have_colons() -> None:
    patch = ("/x/10:30/a.diff", "/x/10:30/hooks.py:register", "/x/10:30/patch.py", "package.module:register")
    assert [is_plugin(entry) for entry in patch] == [False, True, False, True]
    assert [file and str(file) for file in map(file_named, patch)] == [
        "/x/10:30/a.diff",
        "/x/10:30/hooks.py",
        "/x/10:30/patch.py",
        None,
    ]


def test_a_toggle_is_needed_by_what_replaces_one_only() -> None:
    assert EngineConfig(patch="a.diff").toggle is None
    with pytest.raises(ValueError, match="patch attempt-1 replaces a toggle"):
        EngineConfig(patch="attempt-1")
    with pytest.raises(ValueError, match="names more than one worker"):
        EngineConfig(patch=("attempt-1", "fault-01"), toggle=Toggle(threshold=5))


@pytest.mark.parametrize("setting", ["THRESHOLD", "env:", "environment:X", "argument:a b"])
def test_a_threshold_is_given_by_a_variable_or_an_argument(setting: str) -> None:
    with pytest.raises(ValueError, match="threshold_setting"):
        EngineConfig(threshold_setting=setting)


def test_files_of_a_stack_lie_beside_its_program(tmp_path: Path) -> None:
    tmp_path /= "10:30"  # a colon, as before a plugin's function
    tmp_path.mkdir()
    for name in ("one.diff", "two.diff", "hooks.py"):
        (tmp_path / name).write_text(CHANGE)
    patch = (f"{tmp_path}/one.diff", f"{tmp_path}/two.diff", f"{tmp_path}/hooks.py:register", "package.module:f")
    found = files(patch)
    assert {name: file.name for name, file in found.items()} == {
        "patch.diff": "one.diff",
        "patch-2.diff": "two.diff",
        "plugin.py": "hooks.py",
    }
    program = local(Program(config=EngineConfig(patch=patch)))
    assert program.config.patch == ("patch.diff", "patch-2.diff", "plugin.py:register", "package.module:f")
    there = patch_beside(program, Path("/a:b")).config.patch
    assert title(there) == "/a:b/patch.diff + /a:b/patch-2.diff + /a:b/plugin.py:register + package.module:f"
    assert (
        patch_beside(Program(config=EngineConfig(patch="10:30.diff")), Path("/a:b")).config.patch == "/a:b/10:30.diff"
    )


def test_a_built_in_patch_lies_beside_its_program_too() -> None:
    config = EngineConfig(patch="attempt-1", toggle=Toggle(threshold=5))
    assert files("attempt-1") == {"patch.py": CASES / "attempt-1" / "patch.py"}
    assert local(Program(config=config)).config.patch == "patch.py"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["attempt-99"], "no patch attempt-99: there are warm, attempt-1"),
        (["nowhere.diff"], "nowhere.diff: No such file or directory"),
        (["text.diff"], "text.diff isn't a unified diff"),
        (["outside.diff"], "outside.diff changes vllm/engine.py, outside SGLang"),
        (["nowhere.py:register"], "plugin nowhere.py:register: no such file"),
        (["latin.diff"], "latin.diff isn't UTF-8 (at byte 2): convert it"),
        (["latin.py:register"], "latin.py isn't UTF-8 (at byte 2): convert it"),
        (["latin.py"], "latin.py isn't UTF-8 (at byte 2): convert it"),
        (["attempt-1", "fault-01"], "attempt-1 and fault-01 are both workers: give one of them"),
        (["empty"], "empty holds no SGLang: give a checkout of its repository"),
    ],
)
def test_what_cant_be_a_patch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: list[str], message: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.diff").write_text("Dear colleague,\n")
    (tmp_path / "outside.diff").write_text(CHANGE.replace("sglang/srt/x.py", "vllm/engine.py"))
    for name in ("latin.diff", "latin.py"):
        (tmp_path / name).write_bytes(b"# \xe9\n")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=re.escape(message)):
        patch_of(given)
