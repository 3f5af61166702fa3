"""A toggle whose first plain step ends its process, as the kernel's out-of-memory killer would."""

import os
import signal
from typing import Any

WORKER = "v1"


def worker(toggled: type) -> type:
    """The toggled class, killed."""

    class Killed(toggled):
        def _plain_step(self, batch: Any) -> Any:
            os.kill(os.getpid(), signal.SIGKILL)

    return Killed
