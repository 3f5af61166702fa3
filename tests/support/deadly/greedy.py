"""A toggle whose first plain step takes memory without end."""

from typing import Any

WORKER = "v1"
BLOCK_BYTES = 16 << 20


def worker(toggled: type) -> type:
    """The toggled class, taking."""

    class Greedy(toggled):
        def _plain_step(self, batch: Any) -> Any:
            taken = []
            while True:
                taken.append(b"x" * BLOCK_BYTES)

    return Greedy
