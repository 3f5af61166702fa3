"""Every case behaves as it is written down; one that no longer does says what changed."""

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.cases import CASES, README, all_folders, load, outcome_of
from harness.checks import Checks
from harness.configuration import EngineConfig
from harness.engine.device import Device
from harness.engine.engine import Engine
from harness.patches import PATCH_FILE, UNCHANGED

FOLDERS = all_folders()
BY_NAME = [pytest.param(folder, id=folder.relative_to(CASES).as_posix()) for folder in FOLDERS]


@pytest.mark.parametrize("folder", BY_NAME)
def test_as_recorded(boot: Callable[[EngineConfig], Engine], device: Device, folder: Path) -> None:
    case = load(folder)
    expected = case.expected.on(device)
    if expected is None:
        pytest.skip(f"nothing is recorded for {device}")
    engine = boot(case.program.config)
    try:
        seen = outcome_of(engine, case.program, Checks(case.program, excuse_sglang=case.expected.excuse_sglang))
    finally:
        engine.close()  # what a fault leaves behind is no engine for the next
    assert seen.meets(expected), f"{folder.name} must be: {expected}\nbut now: {seen}"


PATCHED = [pytest.param(folder, id=folder.name) for folder in FOLDERS if load(folder).program.config.patch != UNCHANGED]


@pytest.mark.parametrize("folder", PATCHED)
def test_the_fixed_toggle_passes(boot: Callable[[EngineConfig], Engine], folder: Path) -> None:
    """The same program, without the patch that it was kept for."""
    program = load(folder).program
    fixed = program.model_copy(update={"config": program.config.model_copy(update={"patch": UNCHANGED})})
    checks = Checks(fixed)
    boot(fixed.config).run(fixed, checks=checks)
    assert checks.evaluated


def test_cases_are_written_for_people() -> None:
    for folder in FOLDERS:
        assert (folder / README).read_text().startswith("# "), folder


def test_every_patch_has_a_case() -> None:
    assert {file.parent for file in CASES.glob(f"*/{PATCH_FILE}")} <= set(FOLDERS)
