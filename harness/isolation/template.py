"""Imported once by the process that children for the emulated device are forked from: SGLang, and no engine.

Forking after CUDA has started is not safe, so children for a GPU are spawned and import SGLang themselves.
"""

import gc

from harness.configuration import EngineConfig
from harness.engine.device import Device
from harness.engine.engine import import_release

import_release(Device.CPU).import_models(EngineConfig())
# No child's garbage collection needs to look at any of this, which would copy its pages.
gc.collect()
gc.freeze()
