"""What the benches measure with, and on."""

import time
from collections.abc import Callable

MAIN_JOB = (1, 10, 3)
"""Batch sizes, in turn."""


def timed(work: Callable[[], object]) -> float:
    """Seconds that it takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
