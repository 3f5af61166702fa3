"""A real server process with the plugin, asked over HTTP; and servers that must not start."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.configuration import EngineConfig, Toggle, Worker
from harness.engine.device import Device
from harness.serving.server import Server, ServerFailed

WORKERS = [
    pytest.param("v1", marks=pytest.mark.xdist_group("serve-v1")),
    pytest.param("v2", marks=[pytest.mark.xdist_group("serve-v2"), pytest.mark.gpu]),
]


@pytest.mark.parametrize("worker", WORKERS)
def test_concurrency_1_and_10(device: Device, worker: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "harness.cli", "serve", "--device", device, "--worker", worker]
    options = ["--toggle", "warm", "--threshold", "5", "--max-new-tokens", "24", "--log", str(tmp_path / "log")]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "off above 5 running requests" in done.stdout
    assert re.search(r"^C=  1 \| 10 requests \| .* \| ok: 10/10$", done.stdout, re.MULTILINE)
    assert re.search(r"^C= 10 \| 10 requests \| .* \| ok: 10/10$", done.stdout, re.MULTILINE)
    few, many = map(float, re.findall(r"(\d\.\d\d) at C=", done.stdout))
    assert few > 2 > many >= 1
    assert done.stdout.rstrip().endswith("every token right")


@pytest.fixture
def threshold_of_the_shell(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("SPEC_TOGGLE_THRESHOLD", "99")
    yield
    assert os.environ["SPEC_TOGGLE_THRESHOLD"] == "99"


@pytest.mark.xdist_group("serve-v1")
@pytest.mark.usefixtures("threshold_of_the_shell")
@pytest.mark.slow
def test_a_server_that_does_not_speculate_is_refused_at_start(device: Device, tmp_path: Path) -> None:
    """The plugin refuses it in the launching process, whatever the harness would let through."""
    server = Server(EngineConfig(worker=Worker.NONE), device, tmp_path / "log")
    server.environment["SPEC_TOGGLE_THRESHOLD"] = "5"
    with server, pytest.raises(ServerFailed, match="SPEC_TOGGLE_THRESHOLD is set, but the server doesn't speculate"):
        server.wait_until_ready()


def test_a_server_that_ends_while_starting(tmp_path: Path) -> None:
    server = Server(EngineConfig(toggle=Toggle(threshold=5)), Device.CPU, tmp_path / "log")
    server.command = [sys.executable, "-S", "-E", "-c", "raise SystemExit('no such model')"]
    with server, pytest.raises(ServerFailed, match="the server ended while starting:\nno such model"):
        server.wait_until_ready()
    assert server.announcement is None
