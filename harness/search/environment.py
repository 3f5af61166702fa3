"""What SGLang's `check_env` says of this machine, asked for in the background."""

import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from harness.diagnosis import examine
from harness.engine.device import Device

PATIENCE_SECONDS = 120


def environment(device: Device) -> "Future[str]":
    """The text, once it is there."""
    on_gpu = device is Device.CUDA and Device.auto() is Device.CUDA
    look: Callable[[], str] = _of_sglang if on_gpu else _of_the_harness
    pool = ThreadPoolExecutor(1)
    text = pool.submit(look)
    pool.shutdown(wait=False)
    return text


def _of_sglang() -> str:
    command = [sys.executable, "-m", "sglang.check_env"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"{_of_the_harness()}\n(sglang.check_env took more than {PATIENCE_SECONDS} s)"
    if done.returncode:
        return f"{_of_the_harness()}\n(sglang.check_env failed: {done.stderr[-200:]})"
    return done.stdout


def _of_the_harness() -> str:
    """Without a GPU `check_env` fails for want of nvidia-smi."""
    lines = [f"{finding.subject}: {finding.detail}" for finding in examine()]
    return "\n".join(["emulated device (CPU); `python3 -m sglang.check_env` needs a GPU", *lines])
