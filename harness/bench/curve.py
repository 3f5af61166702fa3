"""Decode steps by batch size: a plain, a patched and an always-spec engine in turn, in a process of its own."""

import gc
import sys
import time
from collections.abc import Iterator
from contextlib import redirect_stdout

from pydantic import BaseModel

from harness.bench.decode_steps import decode_steps
from harness.configuration import EngineConfig, Worker
from harness.engine.device import Device
from harness.engine.engine import Engine

SHORT, LONG = 16, 64
"""Tokens of each request in the two runs whose difference is decode steps alone."""
REPEATS = 3
"""Of each run."""
LEAST_ROUNDS = 2
"""One alone can't tell a slow engine from a slow moment of the host."""
PLAIN, PATCHED, ALWAYS = "plain", "patched", "always-spec"


class Rounds(BaseModel):
    """One engine's figures: for each batch size one a round."""

    step_ms: list[list[float]]
    tokens_per_s: list[list[float]]


class Curves(BaseModel):
    """The three engines'."""

    batch_sizes: tuple[int, ...]
    engines: dict[str, Rounds]

    def ratios(self, threshold: int) -> Iterator[tuple[int, str, list[float]]]:
        """Patched step over that of the engine that it should be as quick as, round by round: size, engine, ratios."""
        for place, size in enumerate(self.batch_sizes):
            other = ALWAYS if size <= threshold else PLAIN
            pairs = zip(self.engines[PATCHED].step_ms[place], self.engines[other].step_ms[place], strict=True)
            yield size, other, [one / two for one, two in pairs]


def measure(config: EngineConfig, device: Device, seconds: float) -> Curves:
    """Rounds until `seconds` are over, two at least; `config` is the patched engine's, its graphs the batch sizes."""
    started = time.monotonic()
    sizes = config.graphs
    configs = {
        PLAIN: config.untoggled.model_copy(update={"worker": Worker.NONE}),
        PATCHED: config,
        ALWAYS: config.untoggled,
    }
    engines = {name: Rounds(step_ms=[[] for _ in sizes], tokens_per_s=[[] for _ in sizes]) for name in configs}
    turn = 0
    while turn < LEAST_ROUNDS or (time.monotonic() - started) * (turn + 1) / turn < seconds:
        turn += 1
        for name, engine_config in configs.items():
            print(f"round {turn}: {name}", file=sys.stderr, flush=True)
            _measure_one(engine_config, device, engines[name])
    return Curves(batch_sizes=sizes, engines=engines)


def _measure_one(config: EngineConfig, device: Device, rounds: Rounds) -> None:
    with Engine(config, device) as engine:
        gc.collect()
        gc.freeze()
        for place, size in enumerate(config.graphs):
            seconds, steps = decode_steps(engine, size, (SHORT, LONG), REPEATS)
            rounds.step_ms[place].append(seconds / steps * 1e3)
            rounds.tokens_per_s[place].append(size * (LONG - SHORT) / seconds)
        gc.unfreeze()


def main() -> None:
    """`python -m harness.bench.curve CONFIG_JSON DEVICE SECONDS`: figures as JSON on standard output."""
    config, device, seconds = sys.argv[1:]
    with redirect_stdout(sys.stderr):  # what a patch prints isn't a figure
        curves = measure(EngineConfig.model_validate_json(config), Device(device), float(seconds))
    sys.stdout.write(curves.model_dump_json())


if __name__ == "__main__":
    main()
