"""In every run a known-bad toggle must be found: a search that can't is worth nothing."""

from pathlib import Path

import pytest

from harness.cases import load
from harness.engine.device import Device
from harness.isolation.messages import Run
from harness.isolation.nursery import Nursery
from harness.report import reproducer
from harness.search.grid import grid
from harness.search.search import Plan, Search

pytestmark = pytest.mark.xdist_group("children")


@pytest.mark.parametrize(
    ("patch", "check"),
    [("fault-05", "I6-spec-info"), pytest.param("attempt-3", "I1-shapes", marks=pytest.mark.slow)],
)
def test_found_shrunk_and_written_down(device: Device, tmp_path: Path, patch: str, check: str) -> None:
    """Silent without checks, or loud; the reproducer replays to the same step."""
    plan = Plan(grid=grid(patch=patch)[:2], device=device, seed=1, examples=50, threads=1, shrink_seconds=30.0)
    search = Search(plan)
    finding = search.run()
    assert finding is not None
    assert finding.ran.outcome.check == check
    assert finding.rate == (3, 3)
    assert len(finding.program.operations) <= 4
    case = load(reproducer.write(finding, tmp_path))
    with Nursery(device) as nursery:
        again = nursery.run(Run(case.program)).outcome
    expected = case.expected.on(device)
    assert expected is not None
    assert again.meets(expected)
