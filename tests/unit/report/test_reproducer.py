"""The folder of a finding is a case; it appears whole or not at all, and overwrites nothing."""

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from harness.cases import load
from harness.engine.device import Device
from harness.errors import UsageError
from harness.patches.workers import CASES
from harness.program import Program
from harness.report import reproducer
from tests.unit.report.findings import DEATH, FAILS, FINDING, FOUND, HANG, PROGRAM, RAISE, RAN

# One worker of pytest-xdist draws: importing matplotlib takes a second of each.
pytestmark = pytest.mark.xdist_group("pictures")
FILES = {"README.md", "expected.json", "found.json", "program.json"}
FILES |= {"patch.py", "report.md", "reproduce.py", "timeline.svg", "trace.json"}


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the picture, which takes a while."""
    monkeypatch.setattr("harness.report.timeline.write", lambda ran, file: file.write_text("<svg/>"))


def with_patch(program: Program, patch: str) -> Program:
    return program.model_copy(update={"config": program.config.model_copy(update={"patch": patch})})


def test_the_folder(tmp_path: Path) -> None:
    from harness.report import timeline

    folder = reproducer.write(FINDING, tmp_path / "new" / "out")
    assert folder == tmp_path / "new" / "out" / "attempt-1-I1-shapes-step-3"
    assert {file.name for file in folder.iterdir()} == FILES
    assert list(folder.parent.iterdir()) == [folder]
    case = load(folder)
    assert case.program == with_patch(PROGRAM, str(folder.resolve() / "patch.py"))
    assert case.expected.on(Device.CPU) == FAILS
    assert case.expected.on(Device.CUDA) is None
    assert Program.from_json((folder / "found.json").read_text()) == with_patch(FOUND, "patch.py")
    assert json.loads((folder / "trace.json").read_text())["traceEvents"]
    readme = (folder / "README.md").read_text()
    assert readme.startswith("# Patch attempt-1: check I1-shapes fails at step 3\n\n**Release** ")
    assert f"\n\n    {FAILS.text}\n\n" in readme
    assert "\n**Why** Not looked into yet.\n" in readme
    picture = ElementTree.parse(folder / "timeline.svg")
    words = {element.text for element in picture.iter() if element.text}
    assert {"I1-shapes, step 3", "threshold 1", "prefill", "broken decode", "graph padding"} <= words
    again = folder / "again.svg"
    timeline.write(FINDING.ran, again)
    assert again.read_bytes() == (folder / "timeline.svg").read_bytes()


@pytest.mark.usefixtures("undrawn")
def test_a_diff_keeps_its_line_ends(tmp_path: Path) -> None:
    """Some are of the file that it changes."""
    diff = tmp_path / "mine.diff"
    diff.write_bytes(b"--- a/sglang/a.py\n+++ b/sglang/a.py\n@@ -1 +1 @@\n-one\r\n+two\r\n")
    finding = replace(FINDING, ran=replace(RAN, program=with_patch(PROGRAM, str(diff))))
    folder = reproducer.write(finding, tmp_path / "out")
    assert (folder / "patch.diff").read_bytes() == diff.read_bytes()
    assert reproducer.write(finding, tmp_path / "out") == folder


@pytest.mark.usefixtures("undrawn")
def test_names(tmp_path: Path) -> None:
    first = reproducer.write(FINDING, tmp_path)
    (first / "README.md").write_text("# Looked into")
    assert reproducer.write(FINDING, tmp_path) == first
    assert (first / "README.md").read_text() == "# Looked into"
    other = replace(FINDING, ran=replace(RAN, program=FOUND))
    assert reproducer.write(other, tmp_path).name == "attempt-1-I1-shapes-step-3-2"
    assert reproducer.write(other, tmp_path).name == "attempt-1-I1-shapes-step-3-2"
    assert [reproducer.name_of(finding) for finding in (RAISE, DEATH, HANG)] == [
        "attempt-1-RuntimeError-step-3",
        "attempt-1-dies-step-3",
        "attempt-1-hangs-step-3",
    ]


@pytest.mark.usefixtures("undrawn")
def test_what_no_other_run_can_repeat_is_not_expected(tmp_path: Path) -> None:
    expected = load(reproducer.write(RAISE, tmp_path)).expected.on(Device.CPU)
    assert expected is not None
    assert expected.text == "RuntimeError: The size of tensor a (160) at"


@pytest.mark.usefixtures("undrawn")
def test_a_patch_that_isnt_built_in(tmp_path: Path) -> None:
    """Its source is beside the script, which finds it wherever the folder is."""
    file = tmp_path / "mine.py"
    file.write_text((CASES / "attempt-1" / "patch.py").read_text())
    config = PROGRAM.config.model_copy(update={"patch": str(file)})
    finding = replace(FINDING, ran=replace(RAN, program=PROGRAM.model_copy(update={"config": config})))
    folder = reproducer.write(finding, tmp_path / "out")
    assert folder.name == "mine-I1-shapes-step-3"
    assert (folder / "patch.py").read_text() == file.read_text()
    assert load(folder).program.config.patch == str(folder.resolve() / "patch.py")
    assert str(tmp_path) not in (folder / "reproduce.py").read_text()
    assert "With patch `mine`," in (folder / "report.md").read_text()


def test_an_interruption_leaves_no_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("harness.report.timeline.write", interrupt)
    with pytest.raises(KeyboardInterrupt):
        reproducer.write(FINDING, tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cant_be_written_to(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="file: no reproducer can be written there: File exists"):
        reproducer.write(FINDING, tmp_path / "file")
