"""SGLang 0.5.12.post1: the one room that knows this release's attribute names."""

from harness.engine.v0_5_12 import requests
from harness.engine.v0_5_12.models import import_models
from harness.engine.v0_5_12.probe import Probe
from harness.engine.v0_5_12.session import Session

RELEASE = "0.5.12.post1"

__all__ = ["RELEASE", "Probe", "Session", "import_models", "requests"]
