"""`bench checks`, the part in a process of its own: what the checks cost a run."""

import json
import sys

from pydantic import BaseModel

from harness.bench.timing import MAIN_JOB, timed
from harness.checks import Checks, selected
from harness.configuration import EngineConfig
from harness.engine.device import Device
from harness.engine.engine import Engine
from harness.program import Program


class Figures(BaseModel):
    """One ratio a pair: a run with checks to a run without, resets not counted."""

    ratios: list[float]
    bare_step_ms: list[float]
    skipped: dict[str, int]
    """How often a check couldn't be evaluated in one run, by check."""
    evaluated: dict[str, int]


def measure(config: EngineConfig, device: Device, pairs: int, families: str) -> Figures:
    """Run the main job with 16 steps at each batch size, with checks and without, in turn."""
    device.prepare()
    program = Program.from_batch_sizes(config, MAIN_JOB, steps_each=16)
    ratios, bare_ms = [], []
    with Engine(config, device) as engine:
        for pair in range(pairs + 1):
            checks = Checks(program, selected(families))
            checked = timed(lambda checks=checks: engine.run(program, checks=checks))  # type: ignore[misc]
            bare = timed(lambda: engine.run(program))
            if pair:  # the first warms both up
                ratios.append(checked / bare)
                bare_ms.append(bare / len(engine.trace.steps) * 1e3)
    skipped: dict[str, int] = {}
    for (name, _), count in checks.skipped.items():
        skipped[name] = skipped.get(name, 0) + count
    return Figures(ratios=ratios, bare_step_ms=bare_ms, skipped=skipped, evaluated=dict(checks.evaluated))


def main() -> None:
    """`python -m harness.bench.checks CONFIG_JSON DEVICE PAIRS FAMILIES`: figures as JSON on standard output."""
    config, device, pairs, families = sys.argv[1:]
    figures = measure(EngineConfig.model_validate_json(config), Device(device), int(pairs), families)
    json.dump(figures.model_dump(), sys.stdout)


if __name__ == "__main__":
    main()
