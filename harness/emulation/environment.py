"""The process environment of the emulated device, set before torch, triton and SGLang read it."""

import os
import sys

ENVIRONMENT = {
    "TRITON_INTERPRET": "1",  # Triton kernels run in Python, on CPU tensors
    "TORCHDYNAMO_DISABLE": "1",  # helpers under @torch.compile run eagerly; compiling them takes minutes
    "CUDA_VISIBLE_DEVICES": "",  # a GPU in the machine must not be half used
    "SGLANG_USE_CPU_ENGINE": "1",
}

READERS = ("triton", "sglang")
"""Modules that read the environment when they are imported."""


def prepare() -> None:
    """Set the environment; raises RuntimeError where a module has read another one already."""
    late = [name for name in READERS if name in sys.modules]
    if late and any(os.environ.get(name) != value for name, value in ENVIRONMENT.items()):
        raise RuntimeError(
            f"{' and '.join(late)} imported before the emulated device was installed: call "
            "harness.emulation.install() first, or use a process of its own"
        )
    os.environ.update(ENVIRONMENT)
