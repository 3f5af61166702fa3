"""A toggle whose first plain step waits for what never comes."""

import threading
from typing import Any

WORKER = "v1"


def worker(toggled: type) -> type:
    """The toggled class, waiting."""

    class Hanging(toggled):
        def _plain_step(self, batch: Any) -> Any:
            wait_for_the_result_that_never_comes()

    return Hanging


def wait_for_the_result_that_never_comes() -> None:
    threading.Event().wait()
