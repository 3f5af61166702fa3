"""Runs made by hand, a short word a step, for labels to be judged on.

`s 0*3 1 pad=4` is a spec step that gave request 0 three tokens and request 1 one, replayed at captured size 4; `p` is a
plain step, `E` a prefill (of all its requests' tokens unless `in=` says), `i` an idle iteration. `a0=3`: request 0
accepted 3 draft tokens. `wait=2`: so many were waiting.
"""

from collections.abc import Mapping, Sequence

from harness.configuration import EngineConfig, Toggle, Worker
from harness.program import Operation, Program, Submit
from harness.prompts import EOS_TOKEN
from harness.trace import RequestTrace, Trace, TraceStep

V1 = EngineConfig(graphs=(1, 2, 4), max_running_requests=6, toggle=Toggle(threshold=2))
V2 = EngineConfig(worker=Worker.V2, graphs=(1, 2, 4), max_running_requests=6, toggle=Toggle(threshold=2))
MODES = {"s": "TARGET_VERIFY", "p": "DECODE", "E": "EXTEND", "i": "IDLE"}


def run(
    *steps: str,
    config: EngineConfig = V1,
    submit: Submit | None = None,
    operations: Sequence[Operation] = (),
    ends: Mapping[int, str] | None = None,
    retracted: Sequence[int] = (),
    flushes: Sequence[bool] = (),
    idle: bool = True,
) -> tuple[Program, Trace]:
    """A program of six requests, as `submit` has them, and what it did; `ends` are finish reasons by request."""
    submit = submit or Submit(max_new_tokens=40)
    program = Program(config=config, operations=(submit.model_copy(update={"count": 6}), *operations))
    trace = Trace(requests=[RequestTrace(n, prompt) for n, prompt in enumerate(program.submits[0].prompts())])
    for text in steps:
        trace.steps.append(_step(trace, text, config))
    for number, reason in (ends or {}).items():
        request = trace.requests[number]
        request.aborted = reason == "abort"
        request.finish_reason = "stop" if reason in ("stop token", "end of sequence") else reason
        if reason in ("stop token", "end of sequence"):
            request.output[-1] = EOS_TOKEN if reason == "end of sequence" else submit.stop_token or 0
    for number in retracted:
        trace.requests[number].retractions += 1
    trace.flushes, trace.idle = list(flushes), idle
    return program, trace


def _step(trace: Trace, text: str, config: EngineConfig) -> TraceStep:
    mode, *words = text.split()
    options = dict(word.split("=") for word in words if "=" in word)
    batch = [tuple(map(int, (word + "*1").split("*")[:2])) for word in words if "=" not in word]
    requests, tokens = tuple(number for number, _ in batch), tuple(count for _, count in batch)
    each = {"s": config.verified_tokens, "p": 1, "i": 0}
    known = sum(len(trace.requests[number].prompt) + len(trace.requests[number].output) for number in requests)
    for number, count in batch:
        trace.requests[number].output += [9] * count
    return TraceStep(
        index=len(trace.steps),
        forward_mode=MODES[mode],
        requests=requests,
        tokens_in=int(options.get("in", known if mode == "E" else each[mode] * len(requests))),
        padded_size=int(options["pad"]) if "pad" in options else None,
        tokens_out=tokens,
        accepted=tuple(int(options.get(f"a{n}", max(0, count - 1))) for n, count in batch) if mode == "s" else None,
        waiting=int(options.get("wait", 0)),
    )
