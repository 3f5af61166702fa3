"""Options that several commands share, and what they mean."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from harness.configuration import EngineConfig, ModelPair, Strategy, Toggle, Worker
from harness.engine.device import Device
from harness.errors import MalformedProgram, RefusedConfiguration, UsageError
from harness.patches.beside import patch_beside
from harness.patches.stack import UNCHANGED, Patch, title
from harness.patches.workers import strategy_of, written_for
from harness.program import Program, first_problem


class DeviceChoice(StrEnum):
    """A device, or whichever there is."""

    AUTO = "auto"
    CPU = "cpu"
    CUDA = "cuda"

    def resolve(self) -> Device:
        """The device meant."""
        return Device.auto() if self is DeviceChoice.AUTO else Device(self.value)


def option(text: str, **more: Any) -> Any:
    """An option without a default of its own: what isn't given is the configuration's to choose."""
    return typer.Option(help=text, show_default=False, **more)


DeviceOption = Annotated[DeviceChoice, typer.Option(help="auto takes a GPU where there is one.")]
WorkerOption = Annotated[Worker | None, option("Which worker decodes [v1].")]
TopkOption = Annotated[int | None, option("Branches of each node of the draft tree [v1: 4, v2: 1].")]
StepsOption = Annotated[int | None, option("Draft steps [3].")]
DraftTokensOption = Annotated[int | None, option("Tokens of the verified tree [topk 1: steps + 1, else 4 * topk].")]
PageSizeOption = Annotated[int | None, option("KV slots in a page [1].")]
GraphsOption = Annotated[
    bool | None, typer.Option("--graphs/--no-graphs", help="CUDA graphs [on].", show_default=False)
]
DtypeOption = Annotated[str | None, option("float32, bfloat16 or float16 [float32].")]
DeviceDtypeOption = Annotated[str | None, option("[float32 on a CPU, bfloat16 on a GPU]")]
BackendOption = Annotated[str | None, option("triton or flashinfer [triton].")]
KvTokensOption = Annotated[int | None, option("KV pool, in tokens [4096].")]
RunningOption = Annotated[int | None, option("Most requests that run at once [16].")]
OverlapOption = Annotated[
    bool | None, typer.Option("--overlap/--no-overlap", help="Overlap scheduling [v2: on].", show_default=False)
]
ContextOption = Annotated[int | None, option("Most tokens of a request, prompt included [512].")]
ChunkOption = Annotated[int | None, option("Tokens of a prefill chunk [no chunking].")]
RadixOption = Annotated[
    bool | None, typer.Option("--radix-cache/--no-radix-cache", help="Prefix cache [on].", show_default=False)
]
WorkersOption = Annotated[str, typer.Option(metavar="auto|N", help="Programs that run at once.")]
ChecksOption = Annotated[str, typer.Option(metavar="I1,I2,...|all", help="Families of checks.")]
TargetOption = Annotated[Path | None, option("Another target model's folder, instead of the built-in pair.")]
DraftOption = Annotated[Path | None, option("Its EAGLE-3 draft's folder.")]
ToggleOption = Annotated[str | None, option("Switch speculation off above --threshold; the strategy: warm or plain.")]
PatchOption = Annotated[
    list[str] | None,
    option("Under test [warm]: a name such as attempt-1, a diff, a plugin or a checkout; repeat it to stack."),
]
ThresholdSettingOption = Annotated[
    str, typer.Option(metavar="env:N|argument:N", help="How a patch of SGLang itself is told the threshold.")
]
ThresholdOption = Annotated[int | None, option("Running requests up to which the toggle speculates.")]
StrategyOption = Annotated[Strategy | None, option("Of the toggle [that which the patch is for, else warm].")]
HysteresisOption = Annotated[int | None, option("How far below --threshold speculation comes back [0].")]


def configuration(**fields: Any) -> EngineConfig:
    """The configuration of the fields that are given; raises RefusedConfiguration naming the first that doesn't fit."""
    try:
        return EngineConfig(**{name: value for name, value in fields.items() if value is not None})
    except ValidationError as error:
        raise RefusedConfiguration(first_problem(error)) from None


def dtype_on(device: Device, dtype: str | None) -> str:
    """The one given, or what suits the device: a GPU's attention kernels are made for 16 bits."""
    return dtype or ("bfloat16" if device is Device.CUDA else "float32")


def worker_of(patch: Patch, wanted: Worker | None) -> Worker | None:
    """The worker to test, None for each that the patch is for; raises UsageError for one that it isn't."""
    only = written_for(patch)
    if wanted is Worker.NONE:
        raise UsageError("--worker none: there is no speculation to switch; give v1 or v2")
    if only is not None and wanted not in (None, only):
        raise UsageError(f"--worker {wanted}: patch {title(patch)} is written for {only}")
    return wanted or only


def checked_setting(text: str) -> str:
    """What --threshold-setting says; raises RefusedConfiguration for what is neither."""
    return configuration(threshold_setting=text).threshold_setting


def captured(graphs: bool | None) -> tuple[int, ...] | None:
    """The captured sizes of --graphs or --no-graphs: none, or the configuration's to choose."""
    return () if graphs is False else None


def pair_of(target: Path | None, draft: Path | None) -> ModelPair | None:
    """The models of --target and --draft; raises RefusedConfiguration for a draft alone."""
    if target is not None:
        return ModelPair(target=target, draft=draft)
    if draft is not None:
        raise RefusedConfiguration("--draft needs --target: the built-in draft fits the built-in target only")
    return None


def toggle_of(
    strategy: str | None, threshold: int | None, hysteresis: int | None, patch: list[str] | None = None
) -> Toggle | None:
    """The toggle of the options given; raises RefusedConfiguration naming what is missing or doesn't fit."""
    wanted = strategy is not None or bool(patch)
    if not wanted and (threshold, hysteresis) != (None, None):
        raise RefusedConfiguration("--threshold and --hysteresis need --toggle warm or plain")
    if wanted and threshold is None:
        option = "--patch" if patch else "--toggle"
        raise RefusedConfiguration(f"{option} needs --threshold: the running requests up to which it speculates")
    if not wanted:
        return None
    strategy = strategy or strategy_of(tuple(patch) if patch else UNCHANGED)
    given: dict[str, Any] = {"strategy": strategy, "threshold": threshold, "hysteresis": hysteresis}
    try:
        return Toggle(**{name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        raise RefusedConfiguration(f"toggle: {first_problem(error)}") from None


def read_program(path: Path) -> Program:
    """The program in a JSON file; raises MalformedProgram naming the file."""
    try:
        return patch_beside(Program.from_json(path.read_text()), path.parent)
    except OSError as error:
        raise MalformedProgram(f"{path}: {error.strerror}") from None
    except (MalformedProgram, UnicodeDecodeError) as error:
        raise MalformedProgram(f"{path}: {error}") from None


def numbers_of(text: str, option: str, least: int) -> list[int]:
    """`1,10,3` as numbers; raises UsageError, naming the option, for anything else."""
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or any(number < least for number in numbers):
        raise UsageError(f"{option} {text!r} isn't a list of numbers from {least} on, such as 1,10,3")
    return numbers
