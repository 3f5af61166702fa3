"""Engines for tests: one a process, kept while its configuration is asked for."""

from harness.configuration import EngineConfig
from harness.engine.device import Device
from harness.engine.engine import Engine
from harness.isolation.journal import Journal


class Engines:
    """Gives the engine of a configuration; asking for another closes the one before."""

    def __init__(self, device: Device, journal: Journal) -> None:
        self._device, self._journal = device, journal
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
                self._current.journal = self._journal
            except Exception as error:
                self._failed[config] = error
                raise
        return self._current

    def close(self) -> None:
        """Let go of whatever is open."""
        if self._current is not None:
            self._current.close()
            self._current = None
