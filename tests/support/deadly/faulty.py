"""A toggle after whose first plain step nothing can be cleared, as on a GPU that has met a fault meanwhile."""

from typing import Any

WORKER = "v1"


def worker(toggled: type) -> type:
    """The toggled class, faulty."""

    class Faulty(toggled):
        def _plain_step(self, batch: Any) -> Any:
            self.req_to_token_pool.clear = meet_the_fault
            return super()._plain_step(batch)

    return Faulty


def meet_the_fault() -> None:
    raise RuntimeError("CUDA error: an illegal memory access was encountered")
