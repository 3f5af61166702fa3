"""Triton reads TRITON_INTERPRET when it is first imported."""

import os

os.environ.setdefault("TRITON_INTERPRET", "1")
