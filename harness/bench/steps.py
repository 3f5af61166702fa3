"""`bench steps`, the part in a process of its own: boot, first answer, steps per second, what a trace costs."""

import json
import resource
import statistics
import sys
import time
from functools import partial

import psutil
from pydantic import BaseModel

from harness.bench import own_loop
from harness.bench.timing import MAIN_JOB, timed
from harness.configuration import EngineConfig
from harness.engine.device import Device
from harness.engine.engine import Engine
from harness.program import Program
from harness.trace import Trace, TraceStep


class Figures(BaseModel):
    """What one process measured; durations in seconds unless the name says otherwise."""

    import_s: float
    """From the start of the process until SGLang was imported."""
    boot_s: float
    """Booting the engine, SGLang imported."""
    first_token_s: float
    """From the start of the process until the first token was streamed."""
    first_answer_s: float
    """From the start of the process until the first request had its whole answer."""
    steps_per_s: float
    """Median over runs of the main job with 16 steps at each batch size, every iteration counted."""
    reset_ms: float
    trace_overhead: float
    """Median ratio of a traced run to SGLang's own loop on the same program, over interleaved pairs."""
    trace_overhead_spread: tuple[float, float]
    """Lowest and highest of these ratios."""
    peak_memory_gb: float
    pairs: int


def measure(config: EngineConfig, device: Device, pairs: int) -> Figures:
    """Measure in this process, which must be new."""
    device.prepare()
    import sglang.srt.managers.scheduler  # noqa: F401 (timed apart from booting)

    imported = time.time()
    program = Program.from_batch_sizes(config, MAIN_JOB)
    with Engine(config, device, as_served=True) as engine:
        booted = time.time()
        seen = _Answers()
        first_answer = seen.first_answer(engine.run(program, seen.step))
        resets, ratios, speeds = _repeat(engine, Program.from_batch_sizes(config, MAIN_JOB, steps_each=16), pairs)
        started = psutil.Process().create_time()
        return Figures(
            import_s=imported - started,
            boot_s=booted - imported,
            first_token_s=seen.first_token - started,
            first_answer_s=first_answer - started,
            steps_per_s=statistics.median(speeds),
            reset_ms=statistics.median(resets) * 1e3,
            trace_overhead=statistics.median(ratios),
            trace_overhead_spread=(min(ratios), max(ratios)),
            peak_memory_gb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9,
            pairs=pairs,
        )


class _Answers:
    """Notes when tokens arrive."""

    def __init__(self) -> None:
        self.arrivals: list[tuple[float, TraceStep]] = []

    def step(self, step: TraceStep) -> None:
        self.arrivals.append((time.time(), step))

    @property
    def first_token(self) -> float:
        return next(when for when, step in self.arrivals if sum(step.tokens_out))

    def first_answer(self, trace: Trace) -> float:
        lengths = {request.number: len(request.output) for request in trace.requests if not request.aborted}
        for when, step in self.arrivals:
            for number, count in zip(step.requests, step.tokens_out, strict=True):
                lengths[number] = lengths.get(number, 0) - count
            if any(left == 0 for left in lengths.values()):
                return when
        raise RuntimeError("no request of the main job got its answer")


def _repeat(engine: Engine, program: Program, pairs: int) -> tuple[list[float], list[float], list[float]]:
    iterations = len(engine.run(program).steps)
    resets, ratios, speeds = [], [], []
    for pair in range(pairs + 1):
        resets.append(timed(engine.reset))
        engine.watch()
        traced = timed(partial(_execute, engine, program))
        engine.reset()
        received = own_loop.script(program, iterations, engine.messages)
        bare = timed(partial(engine.run_bare, received))
        if pair:  # the first warms both up
            ratios.append(traced / bare)
            speeds.append(iterations / traced)
    return resets, ratios, speeds


def _execute(engine: Engine, program: Program) -> None:
    for operation in program.operations:
        engine.execute(operation)


def main() -> None:
    """`python -m harness.bench.steps CONFIG_JSON DEVICE PAIRS`: figures as JSON on standard output."""
    config, device, pairs = sys.argv[1:]
    figures = measure(EngineConfig.model_validate_json(config), Device(device), int(pairs))
    json.dump(figures.model_dump(), sys.stdout)


if __name__ == "__main__":
    main()
