"""`bench toggle`, the part in a process of its own: what the toggle costs at boot and in a plain step."""

import gc
import json
import sys
import time

from pydantic import BaseModel

from harness.bench.decode_steps import decode_steps
from harness.configuration import EngineConfig, Worker
from harness.engine.device import Device
from harness.engine.engine import Engine

SHORT, LONG = 32, 160
"""Tokens of each request in the two runs whose difference is decode steps alone."""
REPEATS = 9
"""Of each run."""
ENGINES = ("plain", "toggled", "always-spec")


class Sample(BaseModel):
    """One boot of one engine, SGLang imported and its kernels compiled."""

    boot_s: float
    step_ms: float
    """A decode step of the whole batch in SGLang's own loop, unwatched; the fastest runs'."""


class Figures(BaseModel):
    """By engine, a sample a round."""

    samples: dict[str, list[Sample]]
    batch_size: int

    def ratios(self, field: str, one: str, other: str) -> list[float]:
        """Ratio of two engines' figures, round by round."""
        pairs = zip(self.samples[one], self.samples[other], strict=True)
        return [getattr(a, field) / getattr(b, field) for a, b in pairs]


def measure(config: EngineConfig, device: Device, batch_size: int, rounds: int) -> Figures:
    """Boot the three engines in turn, `rounds` times; `config` is the toggled engine's."""
    device.prepare()
    configs = {
        "plain": config.model_copy(update={"worker": Worker.NONE, "toggle": None}),
        "toggled": config,
        "always-spec": config.model_copy(update={"toggle": None}),
    }
    with Engine(config, device):  # imports, compiles and caches: not counted
        pass
    samples: dict[str, list[Sample]] = {name: [] for name in ENGINES}
    for turn in range(rounds):
        for name in ENGINES:
            samples[name].append(_sample(configs[name], device, batch_size))
            print(f"round {turn + 1} of {rounds}: {name} {samples[name][-1]}", file=sys.stderr, flush=True)
    return Figures(samples=samples, batch_size=batch_size)


def _sample(config: EngineConfig, device: Device, batch_size: int) -> Sample:
    # What earlier engines left behind mustn't slow this one's garbage collections.
    gc.collect()
    gc.freeze()
    started = time.perf_counter()
    with Engine(config, device, as_served=True) as engine:
        booted = time.perf_counter() - started
        gc.collect()
        gc.freeze()
        seconds, steps = decode_steps(engine, batch_size, (SHORT, LONG), REPEATS)
        return Sample(boot_s=booted, step_ms=seconds / steps * 1e3)


def main() -> None:
    """`python -m harness.bench.toggle CONFIG_JSON DEVICE BATCH_SIZE ROUNDS`: figures as JSON on standard output."""
    config, device, batch_size, rounds = sys.argv[1:]
    figures = measure(EngineConfig.model_validate_json(config), Device(device), int(batch_size), int(rounds))
    json.dump(figures.model_dump(), sys.stdout)


if __name__ == "__main__":
    main()
