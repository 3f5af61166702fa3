"""Start and stop `python -m sglang.launch_server` with the toggle's plugin."""

import os
import random
import signal
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx

from harness.configuration import EngineConfig
from harness.engine.device import Device
from harness.engine.v0_5_12 import http
from harness.engine.v0_5_12.boot import toggle_environment
from harness.toggle.settings import PREFIX

HOST = "127.0.0.1"
EMULATED = Path(__file__).parents[1] / "emulation/site"
"""On a process's PYTHONPATH, this puts it on the emulated device."""
PORTS = range(20000, 50000)
"""SGLang derives other ports from a server's, 10,000 higher among them, and all must be valid."""
READY_S, STOP_S, POLL_S = 300.0, 20.0, 0.5


class ServerFailed(Exception):
    """The server ended or didn't get ready; the message ends with what it wrote last."""


class Server:
    """One server, from `with` to its end; what it writes goes to `log`."""

    def __init__(self, config: EngineConfig, device: Device, log: Path) -> None:
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
        self.environment |= toggle_environment(config)
        if device is Device.CPU:
            path = [str(EMULATED), *filter(None, [os.environ.get("PYTHONPATH")])]
            self.environment["PYTHONPATH"] = os.pathsep.join(path)
        port = _free_port()
        self.url = f"http://{HOST}:{port}"
        self.command = http.command_line(config, device.value, HOST, port)
        self.log = log
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                self.command, env=self.environment, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )
        return self

    def wait_until_ready(self) -> float:
        """Seconds until it answered; raises ServerFailed."""
        started = time.monotonic()
        while not self._ready():
            seconds = time.monotonic() - started
            if self._process is None or self._process.poll() is not None:
                raise ServerFailed(f"the server ended while starting:\n{self.last_lines()}")
            if seconds > READY_S:
                raise ServerFailed(f"the server wasn't ready after {READY_S:.0f} s:\n{self.last_lines()}")
            time.sleep(POLL_S)
        return time.monotonic() - started

    @property
    def announcement(self) -> str | None:
        """The line in which the toggled worker said what it will do; None where there was none."""
        for line in self.log.read_text(errors="replace").splitlines():
            if http.ANNOUNCEMENT in line:
                return line[line.index(http.ANNOUNCEMENT) :]
        return None

    def last_lines(self, count: int = 8) -> str:
        """The end of its log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-count:])

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop it and all its processes."""
        process, self._process = self._process, None
        if process is None:
            return
        for sign in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(process.pid, sign)
                process.wait(STOP_S)
            except ProcessLookupError:
                break
            except subprocess.TimeoutExpired:
                continue
        process.wait()

    def _ready(self) -> bool:
        try:
            return httpx.get(self.url + http.HEALTH, timeout=5).status_code == 200
        except httpx.TransportError:
            return False


def _free_port() -> int:
    for port in random.sample(PORTS, len(PORTS)):
        with socket.socket() as probe, suppress(OSError):
            probe.bind((HOST, port))
            return port
    raise ServerFailed(f"no free port from {PORTS.start} to {PORTS.stop - 1}")
