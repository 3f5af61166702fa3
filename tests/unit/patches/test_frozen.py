"""A validation tests a patch as it was when it began."""

from pathlib import Path

import pytest

from harness.configuration import EngineConfig, Toggle
from harness.errors import UsageError
from harness.patches import overlay
from harness.patches.frozen import frozen
from harness.patches.stack import entries, file_named
from harness.report import facts
from tests.unit.patches.test_stack import CHANGE

pytestmark = pytest.mark.usefixtures("installed")


def files(patch: str | tuple[str, ...]) -> list[Path]:
    found = [file_named(entry) for entry in entries(patch)]
    return [file for file in found if file is not None]


def test_copies_that_nobody_edits(tmp_path: Path) -> None:
    (tmp_path / "10:30").mkdir()
    diff, plugin = tmp_path / "fix.diff", tmp_path / "10:30" / "hooks.py"
    diff.write_text(CHANGE)
    plugin.write_bytes(b"def register():\r\n    pass\r\n")
    patch = (str(diff), f"{plugin}:register", "package.module:register", "attempt-1")
    first = frozen(patch)
    assert frozen(patch) == first
    copies = files(first)
    assert all(copy.is_relative_to(overlay.cache() / "frozen") for copy in copies)
    assert [copy.name for copy in copies] == ["fix.diff", "hooks.py"]
    assert entries(first)[1:] == (f"{copies[1]}:register", *patch[2:])
    diff.write_text(CHANGE.replace("+b", "+c"))
    assert copies[0].read_text() == CHANGE
    assert copies[1].read_bytes() == plugin.read_bytes()
    assert files(frozen(patch))[0].read_text() == diff.read_text()
    assert files(frozen(patch))[1] == copies[1]


def test_reports_call_it_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my-attempt").mkdir()
    (tmp_path / "my-attempt" / "patch.py").touch()
    monkeypatch.chdir(tmp_path / "my-attempt")
    config = EngineConfig(patch=frozen("patch.py"), toggle=Toggle(threshold=5))
    assert isinstance(config.patch, str)
    assert facts.subject(config) == "my-attempt"


def test_what_cant_be_frozen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match=r"gone\.diff: No such file or directory"):
        frozen(str(tmp_path / "gone.diff"))
    (tmp_path / "latin.py").write_bytes(b"# \xe9\n")
    with pytest.raises(UsageError, match=r"latin\.py isn't UTF-8 \(at byte 2\): convert it"):
        frozen(f"{tmp_path}/latin.py:register")
    (tmp_path / "file.diff").write_text(CHANGE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file.diff"))
    with pytest.raises(UsageError, match="set XDG_CACHE_HOME to another folder"):
        frozen(str(tmp_path / "file.diff"))
