"""The HTTP interface of a server of this release (entrypoints/http_server.py)."""

import sys
from typing import Any

from harness.configuration import EngineConfig
from harness.engine.v0_5_12.boot import server_arguments
from harness.engine.v0_5_12.requests import sampling
from harness.program import Submit

HEALTH, GENERATE = "/health", "/generate"
ANNOUNCEMENT = "Speculation toggle: "
"""How the line starts that a toggled worker logs (harness/toggle/schedule.py)."""


def command_line(config: EngineConfig, device: str, host: str, port: int) -> list[str]:
    """What a person would type to serve this configuration."""
    arguments = server_arguments(config, device) | {"log_level": "info", "host": host, "port": port}
    words = [sys.executable, "-m", "sglang.launch_server"]
    for name, value in arguments.items():
        option = "--" + name.replace("_", "-")
        if value is True:
            words.append(option)
        elif isinstance(value, list):
            words += [option, *map(str, value)]
        elif value is not None and value is not False:
            words += [option, str(value)]
    return words


def body(submit: Submit, prompt: tuple[int, ...]) -> dict[str, Any]:
    """A request for one prompt."""
    return {"input_ids": list(prompt), "sampling_params": sampling(submit)}


def tokens(reply: dict[str, Any]) -> list[int]:
    """The tokens of a reply."""
    output: list[int] = reply["output_ids"]
    return output


def decode_steps(reply: dict[str, Any]) -> int | None:
    """Decode steps that the request took part in, spec and plain; None from a server that doesn't speculate."""
    steps: int | None = reply["meta_info"].get("spec_verify_ct")
    return steps
