"""`bench checks`, the part in a process of its own: what the checks cost a run."""

import json
import sys

from pydantic import BaseModel

from harness.bench.timing import MAIN_JOB, timed
from harness.checks import Checks, selected
from harness.checks.base import Check
from harness.configuration import EngineConfig
from harness.engine.device import Device
from harness.engine.engine import Engine
from harness.program import Program

Families = tuple[type[Check], ...]

LOOKING = "shown to no check"
"""What it costs to show the moments of a run to no check."""


class Figures(BaseModel):
    """One ratio a pair: a run with checks to a run without, resets not counted."""

    ratios: list[float]
    bare_step_ms: list[float]
    each: dict[str, list[float]]
    """The same ratios with one family alone, by its name, where they were asked for."""
    skipped: dict[str, int]
    """How often a check couldn't be evaluated in one run, by check."""
    evaluated: dict[str, int]


def measure(config: EngineConfig, device: Device, pairs: int, families: str, each: bool) -> Figures:
    """Run the main job with 16 steps at each batch size, with checks and without, in turn."""
    device.prepare()
    program = Program.from_batch_sizes(config, MAIN_JOB, steps_each=16)
    chosen = selected(families)
    alone: dict[str, Families] = {LOOKING: (), **{family.name: (family,) for family in chosen}} if each else {}
    figures = Figures(ratios=[], bare_step_ms=[], each={name: [] for name in alone}, skipped={}, evaluated={})
    with Engine(config, device) as engine:

        def checked(checks: Checks) -> float:
            return timed(lambda: engine.run(program, checks=checks))

        for pair in range(pairs + 1):
            seconds = {name: checked(Checks(program, one)) for name, one in alone.items()}
            checks = Checks(program, chosen)
            with_all = checked(checks)
            bare = timed(lambda: engine.run(program))
            if pair:  # the first warms both up
                figures.ratios.append(with_all / bare)
                figures.bare_step_ms.append(bare / len(engine.trace.steps) * 1e3)
                for name in alone:
                    figures.each[name].append(seconds[name] / bare)
    for (name, _), count in checks.skipped.items():
        figures.skipped[name] = figures.skipped.get(name, 0) + count
    figures.evaluated = dict(checks.evaluated)
    return figures


def main() -> None:
    """`python -m harness.bench.checks CONFIG_JSON DEVICE PAIRS FAMILIES EACH`: figures as JSON on standard output."""
    config, device, pairs, families, each = sys.argv[1:]
    figures = measure(EngineConfig.model_validate_json(config), Device(device), int(pairs), families, each == "each")
    json.dump(figures.model_dump(), sys.stdout)


if __name__ == "__main__":
    main()
