"""Imported once by the process that children for the emulated device are forked from: SGLang, and no engine.

Forking after CUDA has started is not safe, so children for a GPU are spawned and import SGLang themselves.
"""

import gc
import json
import os
import signal
import sys

INTERRUPTED = 128 + signal.SIGINT


def _end(*_: object) -> None:
    os._exit(INTERRUPTED)


# All imports from here on take long, and a traceback of one of them would be all that a person sees of Ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, _end)

from harness.engine.device import Device  # noqa: E402
from harness.isolation.inside import make_ready  # noqa: E402
from harness.isolation.nursery import TEMPLATE_SOURCES  # noqa: E402

PATIENCE_SECONDS = 60
"""In which no module is imported any more: a patch of SGLang may wait for ever."""
_modules = 0


def _look(*_: object) -> None:
    global _modules
    if len(sys.modules) == _modules:
        raise TimeoutError("importing SGLang doesn't return")
    _modules = len(sys.modules)


signal.signal(signal.SIGALRM, _look)
signal.setitimer(signal.ITIMER_REAL, PATIENCE_SECONDS, PATIENCE_SECONDS)
make_ready(Device.CPU, tuple(json.loads(os.environ[TEMPLATE_SOURCES])))
signal.setitimer(signal.ITIMER_REAL, 0)
# No child's garbage collection needs to look at any of this, which would copy its pages.
gc.collect()
gc.freeze()
