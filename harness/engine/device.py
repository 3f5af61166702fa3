"""Where an engine runs: a GPU, or the emulated device on a CPU."""

from enum import StrEnum

from harness.errors import UsageError


class Device(StrEnum):
    """`cuda`, or `cpu`: emulated. One process can use only one of them, since SGLang decides at import."""

    CPU = "cpu"
    CUDA = "cuda"

    @classmethod
    def auto(cls) -> "Device":
        """A GPU where the driver shows one, else the emulated device; leaves torch and CUDA alone."""
        from harness.isolation.gpus import survey

        return cls.CUDA if survey() else cls.CPU

    def prepare(self) -> None:
        """Make this process ready; raises UsageError where there is no such device."""
        self.check()
        if self is Device.CPU:
            from harness import emulation

            emulation.install()

    def check(self) -> None:
        """Raise UsageError where there is no such device."""
        if self is Device.CUDA and Device.auto() is not Device.CUDA:
            raise UsageError("no usable GPU for --device cuda: see `toggle-harness doctor`, or use --device cpu")
