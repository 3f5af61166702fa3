"""`toggle-harness serve`: a real server with the toggle, asked by a real client, every token checked."""

import shlex
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from harness.commands import options
from harness.commands.options import DeviceChoice, captured, configuration, dtype_on, numbers_of, toggle_of
from harness.configuration import EngineConfig
from harness.engine.device import Device
from harness.errors import UsageError
from harness.serving.line import Line
from harness.serving.questions import Questions

OK, NOT_OK = 0, 1


def command(
    concurrency: Annotated[str, typer.Option(metavar="N,N,...", help="Requests in flight, in turn.")] = "1,10",
    requests: Annotated[int, typer.Option(min=1, help="Requests at each concurrency.")] = 10,
    max_new_tokens: Annotated[int, typer.Option(min=1, max=400, help="Tokens of each answer.")] = 64,
    device: options.DeviceOption = DeviceChoice.AUTO,
    worker: options.WorkerOption = None,
    topk: options.TopkOption = None,
    steps: options.StepsOption = None,
    page_size: options.PageSizeOption = None,
    graphs: options.GraphsOption = None,
    dtype: options.DeviceDtypeOption = None,
    attention_backend: options.BackendOption = None,
    toggle: options.ToggleOption = None,
    threshold: options.ThresholdOption = None,
    hysteresis: options.HysteresisOption = None,
    log: Annotated[Path | None, options.option("Where the server's output goes [a temporary file].")] = None,
) -> int:
    """Start `python -m sglang.launch_server`, ask it over HTTP at each concurrency, and check every token.

    Exit code 0 if every answer is right, 1 if not or if the server fails, 2 for wrong usage.
    """
    resolved = device.resolve()
    config = configuration(
        worker=worker,
        topk=topk,
        steps=steps,
        page_size=page_size,
        graphs=captured(graphs),
        dtype=dtype_on(resolved, dtype),
        attention_backend=attention_backend,
        toggle=toggle_of(toggle, threshold, hysteresis),
    )
    counts = numbers_of(concurrency, "--concurrency", least=1)
    resolved.check()
    return serve(config, resolved, counts, Questions.of(config, requests, max_new_tokens), _log_file(log))


def _log_file(given: Path | None) -> Path:
    if given is None:
        return Path(tempfile.mkdtemp(prefix="toggle-harness-")) / "server.log"
    try:
        given.touch()
    except OSError as error:
        raise UsageError(f"--log {given}: {error.strerror}") from None
    return given


def serve(config: EngineConfig, device: Device, counts: list[int], questions: Questions, log: Path) -> int:
    """Serve, ask and report; returns the exit code."""
    from harness.serving.client import ask_all  # a release's room imports torch, which takes seconds
    from harness.serving.server import Server, ServerFailed

    console = Console(highlight=False)
    server = Server(config, device, log)
    console.print(shlex.join(server.command), style="dim", soft_wrap=True)
    console.print(f"its output: {log}", soft_wrap=True)
    try:
        with server:
            with console.status("the server is starting"):
                seconds = server.wait_until_ready()
            console.print(f"ready after {seconds:.0f} s")
            if config.toggle is not None:
                console.print(server.announcement or "[red]no word of the toggle in its output[/red]", soft_wrap=True)
            lines = []
            for count in counts:
                lines.append(ask_all(server.url, questions, count))
                console.print(str(lines[-1]), soft_wrap=True)
            announced = config.toggle is None or server.announcement is not None
    except ServerFailed as failure:
        console.print(str(failure), markup=False, soft_wrap=True)
        return NOT_OK
    return OK if _report(lines, console) and announced else NOT_OK


def _report(lines: list[Line], console: Console) -> bool:
    """Say what was wrong, and how many tokens a decode step gave; whether all was right."""
    for line in lines:
        for number, reply in enumerate(line.replies):
            if reply.problem is not None:
                console.print(f"C={line.concurrency}, request {number}: {reply.problem}", markup=False, soft_wrap=True)
    steps = [
        f"{line.tokens_per_step:.2f} at C={line.concurrency}" for line in lines if line.tokens_per_step is not None
    ]
    right = all(line.ok for line in lines)
    verdict = "[green]every token right[/green]" if right else "[red]not all right[/red]"
    console.print(f"tokens of a request in a decode step: {', '.join(steps)}; " * bool(steps) + verdict, soft_wrap=True)
    return right
