"""What the emulated device can't do, said by name."""


class UnreferencedKernel(NotImplementedError):
    """A compiled kernel was launched for which the emulated device has no reference."""

    def __init__(self, kernel: str) -> None:
        super().__init__(
            f"the emulated device has no reference for the kernel {kernel}: add one in harness/emulation/kernels, "
            "or run with --device cuda"
        )
