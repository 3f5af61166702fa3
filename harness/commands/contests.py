"""What `bench throughput` and `bench workload` share: which engines on which models, where the results go."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from harness.bench.contest import DEFAULT_THRESHOLDS, STRATEGIES, Contest, engine_names
from harness.bench.engines import Engines, InProcess, Measured
from harness.commands import options
from harness.configuration import EngineConfig, Worker
from harness.engine.device import Device
from harness.errors import UsageError
from harness.isolation import gpus
from harness.models import shape as shape_of
from harness.models import vocabulary_size
from harness.prompts import MAXIMUM_CONTEXT, VOCABULARY_SIZE
from harness.serving.questions import LEAST_PROMPT

ShapeOption = Annotated[str | None, options.option("A named shape with dummy weights, e.g. llama-3.1-8b.")]
AcceptOption = Annotated[
    float | None,
    options.option("Tokens of a request that a spec step accepts, simulated [no simulation].", min=1),
]
EnginesOption = Annotated[str | None, options.option("Which to measure [all].", metavar="NAME,NAME,...")]
PromptOption = Annotated[int, typer.Option(min=LEAST_PROMPT, max=MAXIMUM_CONTEXT, help="Tokens of each prompt.")]
NewTokensOption = Annotated[int, typer.Option(min=1, help="Tokens of each answer.")]
RoundsOption = Annotated[int, typer.Option(min=1, help="Measurements of each engine at each point.")]
MinutesOption = Annotated[
    float | None, options.option("Begin nothing more after so long, boots included [no limit].", min=0.1)
]
OutputOption = Annotated[Path, typer.Option(help="Folder for the results; made if need be.")]
ThresholdOption = Annotated[int | None, options.option("Of the toggled engines [v1: 16, v2: 32].", min=1)]

WIDTH = 120
"""Columns of a table that goes into a file."""


def config_of(
    device: Device,
    dtype: str | None,
    shape: str | None,
    target: Path | None,
    draft: Path | None,
    worker: Worker | None,
    topk: int | None,
    steps: int | None,
    attention_backend: str | None,
) -> EngineConfig:
    """The always-spec engine's configuration, but for its room; raises UsageError for what doesn't fit together."""
    if shape is not None and (target is not None or draft is not None):
        raise UsageError("--shape or --target with --draft, not both")
    return options.configuration(
        worker=worker,
        topk=topk,
        steps=steps,
        dtype=options.dtype_on(device, dtype),
        attention_backend=attention_backend,
        models=options.pair_of(target, draft) if shape is None else shape_of(shape),
    )


def contest(
    config: EngineConfig,
    device: Device,
    *,
    threshold: int | None,
    engines: str | None,
    prompt_tokens: int,
    new_tokens: int,
    accept_length: float | None,
    running: int,
    longest: int,
    server: bool = False,
) -> Contest:
    """The contest of the options given; raises UsageError for what can't be measured.

    At most `running` requests will run at once, and the longest answer has `longest` tokens.
    """
    if not config.speculative:
        raise UsageError("--worker none: there is no speculation to switch, and a plain engine is measured anyway")
    size = vocabulary_size(config)
    if size is not None and size < VOCABULARY_SIZE:
        raise UsageError(f"prompts need a vocabulary of {VOCABULARY_SIZE} token ids, the target's has {size}")
    if accept_length is not None and accept_length > config.steps + 1:
        raise UsageError(f"--accept-length {accept_length:g}: {config.steps} steps accept {config.steps + 1} at most")
    names = _names(engines, config.worker)
    threshold = DEFAULT_THRESHOLDS[config.worker] if threshold is None else threshold
    if threshold >= running and set(names) & set(STRATEGIES):
        raise UsageError(f"--threshold {threshold}: at most {running} requests run at once, nothing would switch")
    made = Contest(
        config=config,
        threshold=threshold,
        engines=names,
        prompt_tokens=prompt_tokens,
        new_tokens=new_tokens,
        accept_length=accept_length,
        device=_name_of(device),
        server=server,
    )
    if made.known and prompt_tokens + longest > MAXIMUM_CONTEXT:
        raise UsageError(f"the built-in pair is right up to {MAXIMUM_CONTEXT} tokens, not {prompt_tokens} + {longest}")
    return made.with_room_for((running, longest))


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


def folder(output: Path) -> Path:
    """The folder of --output, which can be written; raises UsageError."""
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--output {output}: {error.strerror}") from None
    return output


def started(contest: Contest, device: Device, logs: Path) -> Engines:
    """Its engines, importing SGLang or waiting to be started as servers."""
    return Engines({name: _engine(name, config, contest, device, logs) for name, config in contest.configs().items()})


def _engine(name: str, config: EngineConfig, contest: Contest, device: Device, logs: Path) -> Measured:
    if not contest.server:
        return InProcess(config, device, contest.accept_length)
    from harness.bench.served import Served  # a release's room imports torch, which takes seconds

    return Served(config, device, contest.accept_length, logs / f"server-{name}.log")


def console(as_json: bool) -> Console:
    """For lines and tables, wide enough for them where they go into a file; beside JSON, on standard error."""
    return Console(highlight=False, stderr=as_json, width=None if sys.stdout.isatty() else WIDTH)


def write(path: Path, content: str | bytes) -> None:
    """In one go: a run that is cut short leaves the last whole file."""
    beside = path.with_name(f".{path.name}")
    beside.write_bytes(content.encode() if isinstance(content, str) else content)
    beside.replace(path)
