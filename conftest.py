"""pytest options, and engines for tests: one a process, kept while its configuration is asked for."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.emulation import environment
from harness.engine.device import Device
from tests.support.engines import Engines

DEVICE = pytest.StashKey[Device]()
EMULATION_TESTS = Path(__file__).parent / "tests/unit/emulation"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--device",
        choices=("auto", "cpu", "cuda"),
        default="auto",
        help="where engines run: auto takes a GPU where there is one, cpu is the emulated device",
    )


def pytest_configure(config: pytest.Config) -> None:
    chosen = config.getoption("--device")
    config.stash[DEVICE] = Device.auto() if chosen == "auto" else Device(chosen)
    if config.stash[DEVICE] is Device.CPU:
        environment.prepare()  # before any test module imports triton


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """One process is on one device: tests of the emulation import triton as the emulation does."""
    on_gpu = config.stash[DEVICE] is Device.CUDA
    return True if on_gpu and collection_path == EMULATION_TESTS else None


def pytest_report_header(config: pytest.Config) -> str:
    return f"device: {config.stash[DEVICE]}"


@pytest.fixture(scope="session")
def device(request: pytest.FixtureRequest) -> Device:
    return request.config.stash[DEVICE]


@pytest.fixture(scope="session")
def boot(device: Device) -> Iterator[Engines]:
    """Returns the engine of a configuration; asking for another closes the one before."""
    engines = Engines(device)
    yield engines
    engines.close()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.stash[DEVICE] is Device.CPU:
        for item in items:
            if item.get_closest_marker("gpu"):
                item.add_marker(pytest.mark.skip(reason="needs an NVIDIA GPU; tests run on the emulated device"))
