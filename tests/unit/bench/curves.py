"""Made-up results of `bench throughput`."""

from collections.abc import Callable, Sequence

from harness.bench.contest import ALWAYS, PLAIN, PLAIN_NO_OVERLAP, STRATEGIES, Contest, engine_names
from harness.bench.throughput import Record, Throughput
from harness.configuration import EngineConfig, Worker

SIZES = (1, 2, 4, 8, 16, 32, 64, 128)


def contest(worker: Worker = Worker.V2, threshold: int = 8) -> Contest:
    return Contest(
        config=EngineConfig(worker=worker),
        threshold=threshold,
        engines=engine_names(worker),
        prompt_tokens=64,
        new_tokens=128,
        accept_length=3.0,
        device="a made-up GPU",
    )


def record(engine: str, concurrency: int, turn: int, tokens_per_s: float, ok: int = 4) -> Record:
    return Record(
        engine=engine,
        concurrency=concurrency,
        turn=turn,
        requests=4,
        ok=ok,
        tokens_per_s=tokens_per_s,
        wall_s=1.0,
        latency_p50_s=0.5,
        latency_p99_s=0.75,
        tokens_per_step=None if engine in (PLAIN, PLAIN_NO_OVERLAP) else 3.0,
    )


def plain_rate(size: int) -> float:
    return 100.0 * size**0.9


def crossing_at(crossing: float) -> Callable[[int], float]:
    """Always-spec's rate, which falls behind plain's from there on."""
    return lambda size: plain_rate(size) * (crossing / size) ** 0.25


def measured(
    spec_rate: Callable[[int], float], noise: Sequence[float] = (1.0,), sizes: Sequence[int] = SIZES
) -> Throughput:
    """A round for each of `noise`, by which always-spec's rates are multiplied; toggles are as quick as the better."""
    results = Throughput(contest=contest())
    for turn, factor in enumerate(noise, 1):
        for size in sizes:
            spec = spec_rate(size) * factor
            rates = {PLAIN: plain_rate(size), ALWAYS: spec, **dict.fromkeys(STRATEGIES, max(spec, plain_rate(size)))}
            results.records += [record(name, size, turn, rate) for name, rate in rates.items()]
    return results
