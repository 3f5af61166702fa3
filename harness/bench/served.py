"""A live server as an engine that is measured; its release's room imports torch, which takes seconds."""

from pathlib import Path

from harness.bench.engines import EngineFailed
from harness.bench.tasks import Answers, Said, Wanted
from harness.configuration import EngineConfig
from harness.engine import simulated
from harness.engine.device import Device
from harness.serving.client import ask_all
from harness.serving.server import Server, ServerFailed


class Served:
    """A server of its own, with the plugin or without, asked over HTTP."""

    def __init__(self, config: EngineConfig, device: Device, accept_length: float | None, log: Path) -> None:
        self._config = config
        self._server = Server(config, device, log)
        self._server.environment |= simulated.environment(accept_length)

    def boot(self) -> float:
        """Start it and wait until it answers."""
        self._server.__enter__()
        try:
            seconds = self._server.wait_until_ready()
        except ServerFailed as failure:
            raise EngineFailed(str(failure)) from None
        if self._config.toggle is not None and self._server.announcement is None:
            raise EngineFailed(f"no word of the toggle in {self._server.log}")
        return seconds

    def ask(self, wanted: Wanted) -> Said:
        """Do a task of one concurrency."""
        assert wanted.task is not None
        task = wanted.task
        line = ask_all(self._server.url, task.questions(self._config), task.in_flight[0])
        return Said(answers=Answers(replies=line.replies, wall_s=line.wall_s))

    def close(self) -> None:
        """Stop it and all its processes."""
        self._server.__exit__(None, None, None)
