"""pytest options, and engines for tests: one a process, kept while its configuration is asked for."""

from collections.abc import Callable, Iterator

import pytest

from harness.configuration import EngineConfig
from harness.engine.device import Device
from harness.engine.engine import Engine


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--device",
        choices=("auto", "cpu", "cuda"),
        default="auto",
        help="where engines run: auto takes a GPU where there is one, cpu is the emulated device",
    )


@pytest.fixture(scope="session")
def device(request: pytest.FixtureRequest) -> Device:
    chosen = request.config.getoption("--device")
    return Device.auto() if chosen == "auto" else Device(chosen)


@pytest.fixture(scope="session")
def boot(device: Device) -> Iterator[Callable[[EngineConfig], Engine]]:
    """Returns the engine of a configuration; asking for another closes the one before.

    A configuration that failed to boot fails again at once.
    """
    current: list[Engine] = []
    failed: dict[EngineConfig, Exception] = {}

    def engine_of(config: EngineConfig) -> Engine:
        if current and current[0].config != config:
            current.pop().close()
        if config in failed:
            raise failed[config]
        if not current:
            try:
                current.append(Engine(config, device))
            except Exception as error:
                failed[config] = error
                raise
        return current[0]

    yield engine_of
    for engine in current:
        engine.close()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    gpu_tests = [item for item in items if item.get_closest_marker("gpu")]
    if not gpu_tests or config.getoption("--device") == "cuda":
        return
    if config.getoption("--device") == "cpu" or Device.auto() is Device.CPU:
        for item in gpu_tests:
            item.add_marker(pytest.mark.skip(reason="needs an NVIDIA GPU, and there is none"))
