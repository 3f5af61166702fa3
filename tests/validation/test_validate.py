"""`validate` as a person runs it: a patch that breaks says how, and SGLang stays as it is installed."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.cases import load
from harness.engine.device import Device
from harness.patches.diffs import installed_package
from harness.patches.workers import CASES

# Each imports SGLang in processes of its own: one after the other, they are no slower.
pytestmark = pytest.mark.xdist_group("validate")
PATH = "python/sglang/srt/speculative/eagle_worker.py"


@pytest.fixture
def report(tmp_path: Path, device: Device) -> Any:
    """Validates, and returns the exit code, what was printed, and the report."""

    def validate(*arguments: str) -> tuple[int, str, dict[str, Any]]:
        command = [sys.executable, "-m", "harness.cli", "validate", *arguments, "--device", device.value]
        options = ["--profile", "quick", "--worker", "v1", "--output", str(tmp_path / "report")]
        environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path / "cache"), "COLUMNS": "200"}
        done = subprocess.run([*command, *options], env=environment, capture_output=True, text=True, check=False)
        assert "Traceback" not in done.stderr, done.stderr
        file = tmp_path / "report" / "report.json"
        return done.returncode, done.stdout + done.stderr, json.loads(file.read_text()) if file.exists() else {}

    return validate


def first_lines(added: str) -> str:
    """A diff that puts lines at the start of v1's worker."""
    lines = "".join(f"+{line}\n" for line in added.splitlines())
    count = len(added.splitlines())
    return f"--- a/{PATH}\n+++ b/{PATH}\n@@ -1,2 +1,{count + 2} @@\n{lines} import logging\n import time\n"


def sources_of(package: Path) -> str:
    digest = hashlib.sha256()
    for file in sorted(package.rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def failed(seen: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = next(stage for stage in seen["stages"] if stage["status"] == "failed")
    return found


def test_an_attempt_as_a_diff(report: Any, tmp_path: Path) -> None:
    before = sources_of(installed_package())
    code, said, seen = report(str(CASES / "attempt-1-diff" / "patch.diff"))
    assert code == 1, said
    assert sources_of(installed_package()) == before
    assert str(tmp_path / "report" / "report.html") in said.splitlines()
    stage = failed(seen)
    assert stage["name"] == "main job"
    assert "I1-shapes" in stage["said"]
    assert stage["failure"]["cold"] == [3, 3]
    case = load(tmp_path / "report" / stage["failure"]["folder"])
    assert len(case.program.operations) <= 4
    assert Path(str(case.program.config.patch)).read_text() == (CASES / "attempt-1-diff" / "patch.diff").read_text()


@pytest.mark.parametrize(
    ("added", "what"),
    [
        ("def broken(:", "the patched eagle_worker.py has a syntax error in line 1"),
        pytest.param("import no_such_module", "No module named 'no_such_module'", marks=pytest.mark.slow),
        pytest.param("import os\nos._exit(3)", "the process ended with code 3", marks=pytest.mark.slow),
        pytest.param("while True:\n    pass", "importing SGLang doesn't return", marks=pytest.mark.slow),
    ],
    ids=["syntax", "import", "exit", "hang"],
)
def test_a_patch_with_which_nothing_starts(report: Any, tmp_path: Path, added: str, what: str) -> None:
    (tmp_path / "mine.diff").write_text(first_lines(added))
    code, said, seen = report(str(tmp_path / "mine.diff"))
    assert code == 1, said
    stage = failed(seen)
    assert (stage["name"], what in stage["said"]) == ("applies and starts", True), stage["said"]


def test_a_diff_that_doesnt_apply(report: Any, tmp_path: Path) -> None:
    (tmp_path / "mine.diff").write_text(first_lines("import os").replace("import time", "import clock"))
    code, said, seen = report(str(tmp_path / "mine.diff"))
    assert (code, seen) == (2, {})
    assert said.startswith("error: mine.diff doesn't apply to SGLang as it is installed: ")
    assert len(said.splitlines()) == 1


@pytest.mark.slow
def test_the_fixed_toggle_is_safe(report: Any) -> None:
    code, said, seen = report("warm")
    assert (code, seen["verdict"]) == (0, "safe"), said
    assert {"switched off", "switched on"} <= seen["coverage"]["labels"].keys()


@pytest.mark.slow
def test_a_patch_that_never_switches_proves_nothing(report: Any, tmp_path: Path) -> None:
    (tmp_path / "mine.diff").write_text(first_lines("THRESHOLD = 5  # and nothing reads it"))
    code, said, seen = report(str(tmp_path / "mine.diff"))
    assert (code, seen["verdict"]) == (3, "unproven"), said
    assert "does the patch take its threshold from env:SGLANG_SPECULATION_THRESHOLD" in said
