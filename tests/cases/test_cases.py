"""Every case behaves as it is written down; one that no longer does says what changed."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.cases import CASES, README, all_folders, load, replay, replay_here
from harness.checks import Checks
from harness.detection import patched_folders
from harness.engine.device import Device
from harness.isolation.nursery import Nurseries
from harness.patches.stack import UNCHANGED, sources
from harness.patches.workers import PATCH_FILE
from tests.support.engines import Engines

FOLDERS = all_folders()


def marked(folder: Path) -> Any:
    """Those that change SGLang are slow, since each imports its own; tests/validation runs one every time."""
    changes_sglang = bool(sources(load(folder).program.config.patch))
    marks = [pytest.mark.slow] * changes_sglang
    return pytest.param(folder, id=folder.relative_to(CASES).as_posix(), marks=marks)


BY_NAME = [marked(folder) for folder in FOLDERS]


@pytest.fixture(scope="module")
def nurseries(device: Device) -> Iterator[Nurseries]:
    with Nurseries(device) as nurseries:
        yield nurseries


@pytest.mark.parametrize("folder", BY_NAME)
def test_as_recorded(boot: Engines, device: Device, request: pytest.FixtureRequest, folder: Path) -> None:
    boot.close()  # a case has an engine of its own
    case = load(folder)
    expected = case.expected.on(device)
    if expected is None:
        pytest.skip(f"nothing is recorded for {device}")
    # On a GPU a fault takes its process along, and what changes SGLang needs one that hasn't imported it.
    apart = device is Device.CUDA or sources(case.program.config.patch)
    seen = replay(case, request.getfixturevalue("nurseries")) if apart else replay_here(case, device)
    assert seen.meets(expected), f"{folder.name} must be: {expected}\nbut now: {seen}"


@pytest.mark.parametrize("name", ["attempt-1", "attempt-2", "attempt-3"])
def test_an_attempt_is_the_same_as_a_worker_and_as_a_diff(name: str) -> None:
    one, other = load(CASES / name), load(CASES / f"{name}-diff")
    assert one.expected.cpu == other.expected.cpu
    assert one.program.operations == other.program.operations


PATCHED = [pytest.param(folder, id=folder.name) for folder in patched_folders()]


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
