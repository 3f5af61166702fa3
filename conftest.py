"""pytest options, and engines for tests: one a process, kept while its configuration is asked for."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.engine.device import Device
from harness.isolation.journal import Journal
from tests.support.engines import Engines

pytest_plugins = ["harness.pytesting.plugin", "pytester"]

EMULATION_TESTS = Path(__file__).parent / "tests/emulation"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """One process is on one device: tests of the emulation import triton as the emulation does."""
    from harness.pytesting.plugin import device_of  # pytest imports its plugins itself, to rewrite their assertions

    on_gpu = device_of(config) is Device.CUDA
    return True if on_gpu and collection_path == EMULATION_TESTS else None


@pytest.fixture(scope="session", autouse=True)
def ctrl_c() -> None:
    """What a shell starts in the background ignores Ctrl-C, and so would all children whose Ctrl-C is tested."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def boot(device: Device, journal_path: Path) -> Iterator[Engines]:
    """Returns the engine of a configuration; asking for another closes the one before."""
    engines = Engines(device, Journal(journal_path))
    yield engines
    engines.close()
