"""`toggle-harness run`: one program, its table as it goes, and whether its tokens are right."""

import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from harness.checks import CheckFailed, Checks, selected
from harness.commands import options
from harness.commands.options import (
    DeviceChoice,
    captured,
    configuration,
    numbers_of,
    pair_of,
    read_program,
    toggle_of,
)
from harness.configuration import DEFAULT_SETTING, EngineConfig
from harness.engine.device import Device
from harness.engine.engine import Engine
from harness.errors import UsageError
from harness.limits import check_batch_sizes, check_program
from harness.models import check_tokens, vocabulary_size
from harness.oracle import Answer, answers_of, closed_form, judge, plain_program
from harness.patches.given import patch_of
from harness.patches.stack import UNCHANGED, title
from harness.program import Program
from harness.report.table import TraceTable
from harness.trace import Trace

RIGHT, WRONG = 0, 1


def command(
    program_file: Annotated[
        Path | None, typer.Argument(metavar="PROGRAM", help="A program's JSON file.", show_default=False)
    ] = None,
    batch_sizes: Annotated[
        str | None,
        typer.Option(metavar="N,N,...", help="Hold the decode batch at these sizes in turn.", show_default=False),
    ] = None,
    steps_each: Annotated[int | None, options.option("Decode steps at each of these sizes [4].", min=1)] = None,
    device: options.DeviceOption = DeviceChoice.AUTO,
    as_json: Annotated[bool, typer.Option("--json", help="Print the trace as JSON, and no table.")] = False,
    worker: options.WorkerOption = None,
    topk: options.TopkOption = None,
    steps: options.StepsOption = None,
    draft_tokens: options.DraftTokensOption = None,
    page_size: options.PageSizeOption = None,
    graphs: options.GraphsOption = None,
    dtype: options.DtypeOption = None,
    attention_backend: options.BackendOption = None,
    kv_tokens: options.KvTokensOption = None,
    max_running_requests: options.RunningOption = None,
    overlap: options.OverlapOption = None,
    context_length: options.ContextOption = None,
    chunked_prefill_size: options.ChunkOption = None,
    radix_cache: options.RadixOption = None,
    target: options.TargetOption = None,
    draft: options.DraftOption = None,
    toggle: options.ToggleOption = None,
    patch: options.PatchOption = None,
    threshold_setting: options.ThresholdSettingOption = DEFAULT_SETTING,
    threshold: options.ThresholdOption = None,
    hysteresis: options.HysteresisOption = None,
    checks: Annotated[str, typer.Option(metavar="I1,I2,...|all|none", help="Checks on every step.")] = "none",
) -> int:
    """Run a program on SGLang's real scheduler, showing each step, and check every token.

    Exit code 0 if every token is right, 1 if not or if the scheduler raises, 2 for wrong usage.
    """
    fields = {
        "worker": worker,
        "topk": topk,
        "steps": steps,
        "draft_tokens": draft_tokens,
        "page_size": page_size,
        "dtype": dtype,
        "attention_backend": attention_backend,
        "kv_tokens": kv_tokens,
        "max_running_requests": max_running_requests,
        "overlap": overlap,
        "context_length": context_length,
        "chunked_prefill_size": chunked_prefill_size,
        "radix_cache": radix_cache,
    }
    if program_file is not None:
        others = (
            batch_sizes,
            steps_each,
            target,
            draft,
            graphs,
            toggle,
            patch or None,
            threshold,
            hysteresis,
            *fields.values(),
        )
        if any(value is not None for value in others):
            raise UsageError(
                "a program file brings its own configuration: leave out --batch-sizes, --worker and the like"
            )
        program = read_program(program_file)
    elif batch_sizes is not None:
        config = configuration(
            graphs=captured(graphs),
            models=pair_of(target, draft),
            toggle=toggle_of(toggle, threshold, hysteresis, patch),
            patch=patch_of(patch) if patch else None,
            threshold_setting=threshold_setting,
            **fields,
        )
        sizes = numbers_of(batch_sizes, "--batch-sizes", least=0)
        program = Program.from_batch_sizes(config, sizes, steps_each=steps_each or 4)
        check_batch_sizes(program, sizes)
    else:
        raise UsageError("nothing to run: give a program file, or --batch-sizes 1,10,3")
    looking_on = None if checks == "none" else Checks(program, selected(checks))
    return run(program, device.resolve(), Console(stderr=as_json, highlight=False), as_json, looking_on)


def run(program: Program, device: Device, console: Console, as_json: bool, checks: Checks | None) -> int:
    """Boot, run, judge, and say all three; returns the exit code."""
    check_program(program)
    check_tokens(program, vocabulary_size(program.config))
    console.print(describe(program.config, device), soft_wrap=True)
    started = time.perf_counter()
    with Engine(program.config, device) as engine:
        console.print(f"booted in {time.perf_counter() - started:.1f} s (importing SGLang included)")
        table = TraceTable(console)
        try:
            trace = engine.run(program, None if as_json else table.add, checks)
        except UsageError:
            raise
        except CheckFailed as failure:
            console.print(str(failure), style="red", markup=False, soft_wrap=True)
            return WRONG
        except Exception as error:
            console.print("".join(traceback.format_exception(error)), markup=False)
            console.print(f"[red]the scheduler raised[/red] with {len(engine.trace.steps)} steps begun")
            return WRONG
        finally:
            if as_json:
                sys.stdout.write(engine.trace.to_json(indent=1) + "\n")
    if checks is not None:
        console.print(tally(checks), soft_wrap=True)
    return verdict(trace, answers(program, device), console)


def tally(checks: Checks) -> str:
    """What was evaluated, and what could not be."""
    said = [f"{sum(checks.evaluated.values())} evaluations of {len(checks.evaluated)} checks: none failed"]
    for (name, reason), count in checks.skipped.items():
        said.append(f"{name} skipped {_times(count)}: {reason}")
    return "\n".join(said)


def answers(program: Program, device: Device) -> Sequence[Answer]:
    """The right answers: in closed form, or else what a plain engine gives to the same requests."""
    known = closed_form(program)
    if known is not None:
        return known
    plain = plain_program(program)
    with Engine(plain.config, device) as engine:
        return answers_of(program, engine.run(plain))


def verdict(trace: Trace, right: Sequence[Answer], console: Console) -> int:
    """Compare, say which requests are wrong, and return the exit code."""
    wrong = judge(trace, right)
    for case in wrong:
        console.print(f"[red]request {case.request}[/red]: {case.message}", soft_wrap=True)
    sizes = sorted(set(trace.decode_sizes))
    off, on = trace.switches
    unknown = sum(answer.tokens is None for answer in right)
    if unknown:
        console.print(
            f"{_requests(unknown)} sampled or penalised: that they ended is judged, their tokens aren't", soft_wrap=True
        )
    console.print(
        f"{len(trace.steps)} steps, decode batch sizes {', '.join(map(str, sizes)) or 'none'}; "
        + f"speculation switched off {_times(off)}, on {_times(on)}; " * bool(off or on)
        + f"{trace.tokens_streamed} tokens for {_requests(len(trace.requests))}: "
        + (f"[red]{_requests(len(wrong))} wrong[/red]" if wrong else "[green]all right[/green]"),
        soft_wrap=True,
    )
    return WRONG if wrong else RIGHT


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _requests(count: int) -> str:
    return f"{count} request{'' if count == 1 else 's'}"


def describe(config: EngineConfig, device: Device) -> str:
    """The configuration in one line, for a person."""
    where = "the emulated device (CPU)" if device is Device.CPU else "CUDA"
    draft = f", topk {config.topk}, {config.steps} steps, {config.verified_tokens} draft tokens" * config.speculative
    graphs = f"graphs at {', '.join(map(str, config.graphs))}" if config.graphs else "no graphs"
    patch = f", patch {title(config.patch)}" if config.patch != UNCHANGED else ""
    toggle = f", toggle {config.toggle.strategy} at {config.toggle.threshold}{patch}" if config.toggle else ""
    return (
        f"SGLang's scheduler on {where}: worker {config.worker}{draft}, page size {config.page_size}, {graphs}{toggle}"
    )
