"""`toggle-harness run` from a cold process: what it prints, and its exit code."""

import json
import subprocess
import sys
from pathlib import Path

from harness.engine.device import Device

ROOT = Path(__file__).parents[2]


def toggle_harness(device: Device, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "harness.cli", *arguments, "--device", device.value]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)


def test_right_and_json_alone_on_standard_output(device: Device) -> None:
    ended = toggle_harness(device, "run", "--batch-sizes", "1,3", "--steps-each", "2", "--json", "--dtype", "bfloat16")
    assert ended.returncode == 0, ended.stderr
    trace = json.loads(ended.stdout)
    assert {step["batch_size"] for step in trace["steps"]} >= {1, 3}
    assert "for 3 requests: all right" in ended.stderr


def test_wrong_tokens_are_named_below_the_table(device: Device) -> None:
    ended = toggle_harness(device, "run", "cases/upstream/v2-stop-token-outrun/program.json")
    assert ended.returncode == 1
    lines = ended.stdout.splitlines()
    assert [line.split()[0] for line in lines[2:7]] == ["step", "0", "1", "2", "3"]
    assert "request 0: 3 tokens, must end after 2 (stop)" in lines
    assert lines[-1].endswith("3 tokens for 1 request: 1 request wrong")
