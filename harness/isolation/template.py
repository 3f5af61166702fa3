"""Imported once by the process that children for the emulated device are forked from: SGLang, and no engine.

Forking after CUDA has started is not safe, so children for a GPU are spawned and import SGLang themselves.
"""

import gc
import json
import os
import signal

from harness.engine.device import Device
from harness.isolation.inside import make_ready
from harness.isolation.nursery import TEMPLATE_SOURCES

PATIENCE_SECONDS = 120


def _give_up(*_: object) -> None:
    raise TimeoutError(f"importing SGLang didn't return within {PATIENCE_SECONDS} s")


signal.signal(signal.SIGALRM, _give_up)
signal.alarm(PATIENCE_SECONDS)
make_ready(Device.CPU, tuple(json.loads(os.environ[TEMPLATE_SOURCES])))
signal.alarm(0)
# No child's garbage collection needs to look at any of this, which would copy its pages.
gc.collect()
gc.freeze()
