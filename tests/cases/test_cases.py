"""Every case behaves as it is written down; one that no longer does says what changed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.cases import CASES, README, all_folders, load, replay, replay_here
from harness.checks import Checks
from harness.engine.device import Device
from harness.isolation.nursery import Nurseries
from harness.patches.stack import UNCHANGED
from harness.patches.workers import PATCH_FILE
from tests.support.engines import Engines

FOLDERS = all_folders()
BY_NAME = [pytest.param(folder, id=folder.relative_to(CASES).as_posix()) for folder in FOLDERS]


@pytest.fixture(scope="module")
def nursery(device: Device) -> Iterator[Nurseries | None]:
    """On a GPU a fault takes its process along."""
    if device is Device.CPU:
        yield None
        return
    with Nurseries(device) as nursery:
        yield nursery


@pytest.mark.parametrize("folder", BY_NAME)
def test_as_recorded(boot: Engines, device: Device, nursery: Nurseries | None, folder: Path) -> None:
    boot.close()  # a case has an engine of its own
    case = load(folder)
    expected = case.expected.on(device)
    if expected is None:
        pytest.skip(f"nothing is recorded for {device}")
    seen = replay_here(case, device) if nursery is None else replay(case, nursery)
    assert seen.meets(expected), f"{folder.name} must be: {expected}\nbut now: {seen}"


PATCHED = [pytest.param(folder, id=folder.name) for folder in FOLDERS if load(folder).program.config.patch != UNCHANGED]


@pytest.mark.parametrize("folder", PATCHED)
def test_the_fixed_toggle_passes(boot: Engines, folder: Path) -> None:
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
