"""An engine in a process of its own, which does tasks in SGLang's own loop, unwatched, until its input ends."""

import gc
import os
import sys
import time
from collections.abc import Callable
from typing import TextIO

from harness.bench import profile, stepping, switches
from harness.bench.closed_loop import ClosedLoop
from harness.bench.tasks import Answers, Said, Task, Wanted
from harness.configuration import EngineConfig
from harness.engine.device import Device
from harness.engine.engine import Engine, import_release
from harness.errors import UsageError
from harness.patches.stack import sources


def answer(engine: Engine, task: Task) -> Answers:
    """Do one task from the state after boot."""
    engine.reset()
    questions = task.questions(engine.config)
    generate = engine.messages.generate
    loop = ClosedLoop(questions, task.in_flight, lambda asked, number: generate(asked.submit, number, asked.prompt))
    engine.run_bare(loop, loop.ended)
    return Answers(replies=loop.replies, wall_s=loop.wall_s)


def serve(config: EngineConfig, device: Device, wanted: TextIO, say: Callable[[Said], None]) -> None:
    """Import SGLang at once, boot when told to, then do what is wanted, a line each."""
    import_release(device, sources(config.patch))
    if not wanted.readline():
        return
    started = time.perf_counter()
    try:
        engine = Engine(config, device, copies=False)
    except UsageError as error:
        say(Said(refused=str(error)))
        return
    with engine:
        if engine.kv_tokens < config.kv_tokens:
            raise RuntimeError(f"memory for {engine.kv_tokens} KV tokens only, {config.kv_tokens} are needed")
        # All that exists by now stays: garbage collections needn't look at it again and again.
        gc.collect()
        gc.freeze()
        say(Said(booted_s=time.perf_counter() - started))
        for line in wanted:
            asked = Wanted.model_validate_json(line)
            if asked.task is not None:
                say(Said(answers=answer(engine, asked.task)))
            elif asked.switching is not None:
                say(Said(switches=switches.measure(engine, asked.switching)))
            elif asked.stepping is not None:
                say(Said(stepped=stepping.measure(engine, asked.stepping)))
            elif asked.profiling is not None:
                say(Said(profiled=profile.measure(engine, asked.profiling)))


def main() -> None:
    """`python -m harness.bench.engine_process CONFIG_JSON DEVICE`: `Wanted` on standard input, `Said` on output."""
    config, device = sys.argv[1:]
    said = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what SGLang prints isn't an answer

    def say(what: Said) -> None:
        said.write(what.model_dump_json() + "\n")
        said.flush()

    try:
        serve(EngineConfig.model_validate_json(config), Device(device), sys.stdin, say)
    except Exception as error:
        say(Said(failed=f"{type(error).__name__}: {error}"))
        raise


if __name__ == "__main__":
    main()
