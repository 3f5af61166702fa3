"""Engines for tests: one a process, kept while its configuration is asked for."""

from harness.configuration import EngineConfig
from harness.engine.device import Device
from harness.engine.engine import Engine


class Engines:
    """Gives the engine of a configuration; asking for another closes the one before."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._current: Engine | None = None
        self._failed: dict[EngineConfig, Exception] = {}

    def __call__(self, config: EngineConfig) -> Engine:
        """An open engine; a configuration that failed to boot fails again at once."""
        if config in self._failed:
            raise self._failed[config]
        if self._current is not None and (self._current.closed or self._current.config != config):
            self.close()
        if self._current is None:
            try:
                self._current = Engine(config, self._device)
            except Exception as error:
                self._failed[config] = error
                raise
        return self._current

    def close(self) -> None:
        """Let go of whatever is open."""
        if self._current is not None:
            self._current.close()
            self._current = None
