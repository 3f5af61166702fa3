"""What commands share that run programs in children: how many at once, and one after the other on a screen."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from threading import Event
from typing import TypeVar

from harness.engine.device import Device
from harness.errors import UsageError
from harness.isolation import gpus, machine
from harness.isolation.child import Interrupted
from harness.isolation.interruption import TICK_SECONDS, Stopped, heeded

ENGINES_A_GPU = 6
"""Engines that share a GPU: the host's work is what takes time, so that several keep it busier than one."""
CORES_AN_ENGINE = 2
"""Of a GPU's host: a scheduler that never waits, and its driver's thread."""

Item = TypeVar("Item")
Result = TypeVar("Result")


def identifiers(device: Device) -> Sequence[str | None]:
    """The GPUs to use, by identifier; of the emulated device one None. Raises UsageError where none is usable."""
    if device is Device.CPU:
        return (None,)
    usable = gpus.usable()
    if not usable:
        seen = "; ".join(gpu.why_not or "" for gpu in gpus.survey())
        raise UsageError(f"no GPU to run on: {seen or gpus.why_none()}")
    return [gpu.identifier for gpu in usable]


def at_once(workers: str, device: Device, gpu_count: int) -> int:
    """How many engines shall run at once: a number, or `auto`; raises UsageError for anything else."""
    if workers == "auto":
        cores, memory = machine.cores(), machine.memory_bytes()
        if device is Device.CPU:
            return machine.workers_without_gpu(cores, memory)
        fitting = machine.workers_without_gpu(cores // CORES_AN_ENGINE, memory)
        return max(gpu_count, min(fitting, gpu_count * ENGINES_A_GPU))
    if not workers.isdecimal() or int(workers) < 1:
        raise UsageError(f"--workers {workers}: give auto, or how many programs shall run at once")
    return int(workers)


def side_by_side(
    work: Callable[[Item, Stopped], Result], items: Iterable[Item], at_once: int
) -> Iterator[tuple[Item, Result]]:
    """Each item with its result, in order, as they come.

    After Ctrl-C, or an item that raises, no more are begun, and those that heed it end.
    """
    over = Event()
    with heeded() as interruption, ThreadPoolExecutor(at_once) as pool:

        def stopped() -> bool:
            return interruption.came or over.is_set()

        def begin(item: Item) -> Result:
            if stopped():
                raise Interrupted
            return work(item, stopped)

        results = [(item, pool.submit(begin, item)) for item in items]
        try:
            for item, result in results:
                while wait([result], TICK_SECONDS).not_done and not interruption.came:
                    pass
                if interruption.came:
                    raise KeyboardInterrupt
                yield item, result.result()
        finally:
            over.set()
            for _, result in results:
                result.cancel()
