"""The emulated device: what a CPU needs to stand in for a GPU.

Triton kernels run in Triton's interpreter or as torch references, compiled kernels as torch references, and CUDA
graphs by record and replay. SGLang's own code (scheduler, workers, memory pools, attention metadata) runs as it is.
"""

from harness.emulation import environment

_installed = False


def install() -> None:
    """Make this process's SGLang run on the emulated device; once, before SGLang is imported."""
    global _installed
    if _installed:
        return
    environment.prepare()
    from harness.emulation import adaptations, sgl_kernel

    sgl_kernel.install()
    adaptations.adapt_torch()
    adaptations.adapt_triton()
    adaptations.adapt_sglang()
    _installed = True
