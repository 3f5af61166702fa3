"""Where an engine runs: a GPU, or the emulated device on a CPU."""

from enum import StrEnum

from harness.errors import UsageError


class Device(StrEnum):
    """`cuda`, or `cpu`: emulated. One process can use only one of them, since SGLang decides at import."""

    CPU = "cpu"
    CUDA = "cuda"

    @classmethod
    def auto(cls) -> "Device":
        """A GPU where there is one, else the emulated device."""
        import torch

        return cls.CUDA if torch.cuda.is_available() else cls.CPU

    def prepare(self) -> None:
        """Make this process ready; raises UsageError where there is no such device."""
        if self is Device.CPU:
            from harness import emulation

            emulation.install()
            return
        import torch

        if not torch.cuda.is_available():
            raise UsageError("no usable GPU for --device cuda: see `toggle-harness doctor`, or use --device cpu")
