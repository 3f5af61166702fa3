"""A search cut into shards: one engine configuration each, so that engines stay warm, and a seed of its own.

The shards of a seed are the same however many threads work on them, and on every machine.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from random import Random

from harness.configuration import EngineConfig

EXAMPLES = 25
"""Programs of a shard."""


@dataclass(frozen=True, slots=True)
class Shard:
    """Some programs of one configuration."""

    number: int
    config: EngineConfig
    seed: int
    examples: int = EXAMPLES


def shards(grid: Sequence[EngineConfig], seed: int, examples: int | None = None) -> Iterator[Shard]:
    """Round and round the grid, for `examples` programs in all, or without end."""
    left = examples
    for number in count():
        if left is not None and left <= 0:
            return
        of_this = EXAMPLES if left is None else min(EXAMPLES, left)
        drawn = Random(f"{seed}/{number}").getrandbits(64)
        yield Shard(number, grid[number % len(grid)], drawn, of_this)
        left = None if left is None else left - of_this
