"""An interrupted validation goes on where it was, or says why it can't."""

from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.validation import plan as planning
from harness.validation.record import FILE, Record
from harness.validation.stage import INTERRUPTED, Coverage, Stage, Status
from tests.unit.validation.reports import FAILED, PASSED, UNPROVEN, plan


def test_what_passed_is_kept(tmp_path: Path) -> None:
    record = Record(plan(tmp_path / "new" / "report"), resume=False)
    for stage in (PASSED, UNPROVEN, FAILED):
        record.add(stage)
    record.close()
    with (tmp_path / "new" / "report" / FILE).open("a") as file:
        file.write('{"name": "soak", "sta')  # cut off while it was written
    again = Record(plan(tmp_path / "new" / "report"), resume=True)
    assert again.stages == {PASSED.name: PASSED, FAILED.name: FAILED}
    again.close()
    assert Record(plan(tmp_path / "new" / "report"), resume=False).stages == {}


def test_what_was_interrupted_is_kept_with_what_it_had_done(tmp_path: Path) -> None:
    begun = Stage(name="search", status=Status.UNPROVEN, said=INTERRUPTED, seconds=40, coverage=Coverage(programs=7))
    first = Record(plan(tmp_path), resume=False)
    first.add(begun)
    first.close()
    again = Record(plan(tmp_path), resume=True)
    assert (again.stages, again.begun) == ({}, {"search": begun})
    again.add(Stage(name="search", status=Status.PASSED, said="", seconds=90))
    again.close()
    assert Record(plan(tmp_path), resume=True).begun == {}


def test_two_at_once_in_one_folder(tmp_path: Path) -> None:
    """The one's stages would pass for the other's."""
    first = Record(plan(tmp_path), resume=False)
    with pytest.raises(UsageError, match="another validation is at work there; give another"):
        Record(plan(tmp_path), resume=False)
    first.close()
    Record(plan(tmp_path), resume=False)


def test_another_patch_or_other_options(tmp_path: Path) -> None:
    Record(plan(tmp_path), resume=False).close()
    with pytest.raises(UsageError, match="is of another patch, other options or another harness: leave --resume out"):
        Record(plan(tmp_path, threshold=6), resume=True)


def test_a_patch_that_was_edited(tmp_path: Path) -> None:
    (tmp_path / "mine.diff").write_text("one")
    before = plan(tmp_path, patch=str(tmp_path / "mine.diff")).fingerprint
    (tmp_path / "mine.diff").write_text("two")
    assert plan(tmp_path, patch=str(tmp_path / "mine.diff")).fingerprint != before


def test_a_harness_that_was_edited(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The fixed toggle is a part of it."""
    (tmp_path / "toggle.py").write_text("one")
    monkeypatch.setattr(planning, "HARNESS", tmp_path)
    before = plan(tmp_path).fingerprint
    (tmp_path / "toggle.py").write_text("two")
    assert plan(tmp_path).fingerprint != before


def test_a_plugin_named_by_its_module(tmp_path: Path) -> None:
    """Nobody knows whether that is still what it was."""
    Record(plan(tmp_path, patch=("warm", "mine.hooks:register")), resume=False).close()
    with pytest.raises(UsageError, match=r"whether mine\.hooks:register has changed can't be told"):
        Record(plan(tmp_path, patch=("warm", "mine.hooks:register")), resume=True)


def test_nothing_to_go_on_with(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no validation that was begun; leave --resume out"):
        Record(plan(tmp_path), resume=True)
    (tmp_path / FILE).write_text("")
    with pytest.raises(UsageError, match="can't be read: leave --resume out"):
        Record(plan(tmp_path), resume=True)


def test_a_folder_that_cant_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=r"--output .*file: File exists"):
        Record(plan(tmp_path / "file"), resume=False)
