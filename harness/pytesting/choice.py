"""Where the tests of a run execute: decided once, in the process that pytest was called in."""

from dataclasses import dataclass

from filelock import BaseFileLock

from harness.engine.device import Device
from harness.errors import UsageError
from harness.isolation import gpus
from harness.isolation.gpus import Gpu

AUTO = "auto"


@dataclass(frozen=True, slots=True)
class Choice:
    """A device; where it is `cuda`, the GPUs that this run has claimed."""

    device: Device
    gpus: tuple[Gpu, ...] = ()
    left_out: tuple[str, ...] = ()
    """Why other GPUs, or all of them, aren't used."""
    claims: tuple[BaseFileLock, ...] = ()

    @property
    def why_no_gpu(self) -> str:
        """Why tests that need a GPU can't run; empty where they can."""
        return "" if self.device is Device.CUDA else "; ".join(self.left_out)

    def lines(self) -> list[str]:
        """What a person should know of it."""
        if self.device is Device.CPU:
            return [f"device: cpu, emulated: {self.why_no_gpu}"]
        return [f"device: cuda: {gpu}" for gpu in self.gpus] + [f"left out: {reason}" for reason in self.left_out]

    def release(self) -> None:
        """Leave the GPUs to other runs."""
        for held in self.claims:
            held.release()


def choose(device: str, wanted: int | None, gpu_required: bool) -> Choice:
    """Look at the GPUs and claim up to `wanted` of them; all that are usable if that is None.

    `device` is --device: `auto` takes a GPU where there is one to be had. Raises UsageError where there is none and
    it, or `gpu_required`, demands one.
    """
    if device == Device.CPU:
        if gpu_required:
            raise UsageError("--require-gpu and --device cpu exclude each other")
        return Choice(Device.CPU, left_out=("--device cpu was given",))
    choice = _claim_up_to(wanted)
    if choice.device is Device.CPU and (gpu_required or device == Device.CUDA):
        option = "--require-gpu" if gpu_required else "--device cuda"
        raise UsageError(f"{option}: no usable GPU: {choice.why_no_gpu}")
    return choice


def _claim_up_to(wanted: int | None) -> Choice:
    found = gpus.survey()
    if not found:
        return Choice(Device.CPU, left_out=(gpus.why_none(),))
    taken: list[Gpu] = []
    claims: list[BaseFileLock] = []
    left_out: list[str] = []
    for gpu in found:
        if gpu.why_not is not None:
            left_out.append(gpu.why_not)
        elif wanted is None or len(taken) < wanted:
            held = gpus.claim(gpu)
            if held is None:
                left_out.append(f"GPU {gpu.number} is in use by another run of yours")
            else:
                taken.append(gpu)
                claims.append(held)
    device = Device.CUDA if taken else Device.CPU
    return Choice(device, tuple(taken), tuple(left_out), tuple(claims))
