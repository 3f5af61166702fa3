"""Options that every contest has: which engines, on which models, asked what."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from typing import Annotated, Any, Concatenate

import typer

from harness.bench.contest import DEFAULT_THRESHOLDS, STRATEGIES, Contest, engine_names
from harness.commands import options
from harness.commands.options import DeviceChoice
from harness.configuration import EngineConfig, Worker
from harness.engine.device import Device
from harness.errors import UsageError
from harness.isolation import gpus
from harness.models import shape as shape_of
from harness.models import vocabulary_size
from harness.prompts import MAXIMUM_CONTEXT, VOCABULARY_SIZE
from harness.serving.questions import LEAST_PROMPT


@dataclass(frozen=True, slots=True)
class Asked:
    """One field for each option; `asking` makes them options."""

    device: options.DeviceOption = DeviceChoice.AUTO
    worker: options.WorkerOption = None
    topk: options.TopkOption = None
    steps: options.StepsOption = None
    dtype: options.DeviceDtypeOption = None
    attention_backend: options.BackendOption = None
    shape: Annotated[str | None, options.option("A named shape with dummy weights, e.g. llama-3.1-8b.")] = None
    target: options.TargetOption = None
    draft: options.DraftOption = None
    accept_length: Annotated[
        float | None,
        options.option("Tokens of a request that a spec step accepts, simulated [no simulation].", min=1),
    ] = None
    engines: Annotated[str | None, options.option("Which to measure [all].", metavar="NAME,NAME,...")] = None
    prompt_tokens: Annotated[
        int, typer.Option(min=LEAST_PROMPT, max=MAXIMUM_CONTEXT, help="Tokens of each prompt.")
    ] = 64
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False

    def config(self, device: Device) -> EngineConfig:
        """The always-spec engine's, but for its room; raises UsageError for what doesn't fit together."""
        if self.shape is not None and (self.target is not None or self.draft is not None):
            raise UsageError("--shape or --target with --draft, not both")
        return options.configuration(
            worker=self.worker,
            topk=self.topk,
            steps=self.steps,
            dtype=options.dtype_on(device, self.dtype),
            attention_backend=self.attention_backend,
            models=options.pair_of(self.target, self.draft) if self.shape is None else shape_of(self.shape),
        )

    def contest(
        self,
        device: Device,
        *,
        threshold: int | None,
        new_tokens: int,
        running: int,
        longest: int,
        crossing: bool = True,
        server: bool = False,
    ) -> Contest:
        """The contest that is asked for; raises UsageError for what can't be measured.

        At most `running` requests will run at once, `crossing` the threshold, and the longest answer has `longest`
        tokens.
        """
        config = self.config(device)
        if not config.speculative:
            raise UsageError("--worker none: there is no speculation to switch, and a plain engine is measured anyway")
        size = vocabulary_size(config)
        if size is not None and size < VOCABULARY_SIZE:
            raise UsageError(f"prompts need a vocabulary of {VOCABULARY_SIZE} token ids, the target's has {size}")
        accepted, most = self.accept_length, config.steps + 1
        if accepted is not None and accepted > most:
            raise UsageError(f"--accept-length {accepted:g}: {config.steps} steps accept {most} at most")
        names = _names(self.engines, config.worker)
        threshold = DEFAULT_THRESHOLDS[config.worker] if threshold is None else threshold
        if crossing and threshold >= running and set(names) & set(STRATEGIES):
            raise UsageError(f"--threshold {threshold}: at most {running} requests run at once, nothing would switch")
        made = Contest(
            config=config,
            threshold=threshold,
            engines=names,
            prompt_tokens=self.prompt_tokens,
            new_tokens=new_tokens,
            accept_length=accepted,
            device=_name_of(device),
            server=server,
        )
        if made.known and self.prompt_tokens + longest > MAXIMUM_CONTEXT:
            raise UsageError(
                f"the built-in pair is right up to {MAXIMUM_CONTEXT} tokens, not {self.prompt_tokens} + {longest}"
            )
        return made.with_room_for((running, longest))


def asking(command: Callable[Concatenate[Asked, ...], int]) -> Callable[..., int]:
    """The command with all options of `Asked` in the place of its parameter of that class, the first."""
    names = [field.name for field in fields(Asked)]

    @wraps(command)
    def asked(**given: Any) -> int:
        return command(Asked(**{name: given.pop(name) for name in names}), **given)

    _, *own = inspect.signature(command).parameters.values()
    common = inspect.signature(Asked).parameters.values()
    parameters = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in (*own, *common)]
    asked.__signature__ = inspect.Signature(parameters, return_annotation=int)  # type: ignore[attr-defined]
    asked.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    del asked.__wrapped__  # Typer would look at the command's own parameters
    return asked


def _names(given: str | None, worker: Worker) -> tuple[str, ...]:
    known = engine_names(worker)
    if given is None:
        return known
    names = tuple(dict.fromkeys(given.split(",")))
    for name in names:
        if name not in known:
            raise UsageError(f"--engines: no engine {name}: there are {', '.join(known)}")
    return names


def _name_of(device: Device) -> str:
    device.check()
    if device is Device.CPU:
        return "the emulated device (CPU)"
    return next(gpu.name for gpu in gpus.survey() if gpu.why_not is None)
