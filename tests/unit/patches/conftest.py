"""A package in SGLang's place."""

from pathlib import Path

import pytest

from harness.patches import checkout, overlay
from tests.unit.patches.test_diffs import BEFORE, WORKER


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What is taken for the installed SGLang; the cache is a folder of the test's own."""
    package = tmp_path / "installed" / "sglang"
    (package / "srt").mkdir(parents=True)
    for file in ("__init__.py", "srt/__init__.py", WORKER):
        (package / file).write_text(BEFORE)
    monkeypatch.setattr(overlay, "installed_package", lambda: package)
    monkeypatch.setattr(checkout, "installed_package", lambda: package)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return package
