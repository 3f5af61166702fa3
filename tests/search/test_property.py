"""No program breaks the patch, a test a configuration: `pytest -n auto tests/search --patch NAME --examples 200`.

What fails is shrunk, and the report names the folder of its reproducer.
"""

from pathlib import Path

import pytest

from harness.configuration import EngineConfig
from harness.engine.device import Device
from harness.patches.workers import strategy_of, written_for
from harness.report import reproducer
from harness.search import known
from harness.search.grid import grid
from harness.search.search import Plan, Search

pytestmark = pytest.mark.xdist_group("children")

QUICK = 2
"""Configurations that every run searches; the rest of the grid is slow."""
DATABASE, FINDINGS = ".hypothesis/examples", Path("findings")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "config" not in metafunc.fixturenames:
        return
    patch = metafunc.config.getoption("--patch")
    configs = grid(written_for(patch), patch, strategy=strategy_of(patch))
    slow = pytest.mark.slow
    metafunc.parametrize(
        "config",
        [
            pytest.param(config, id=f"{number}-{config.worker}", marks=slow if number >= QUICK else ())
            for number, config in enumerate(configs)
        ],
    )


def test_no_program_breaks_it(config: EngineConfig, device: Device, request: pytest.FixtureRequest) -> None:
    plan = Plan(
        grid=[config],
        device=device,
        seed=request.config.getoption("--search-seed"),
        examples=request.config.getoption("--examples"),
        threads=1,
        database=known.open_database(DATABASE),
    )
    search = Search(plan)
    finding = search.run()
    if finding is not None:
        folder = reproducer.write(finding, FINDINGS)
        pytest.fail(f"{finding.ran.outcome}\n{finding.ran.message}\nreproducer: {folder}", pytrace=False)
    assert search.progress.crossing, "no program crossed the threshold: nothing is proven"
