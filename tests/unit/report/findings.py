"""Findings made by hand: a check that fails, a raise, a death, a hang, and one that doesn't always happen."""

from dataclasses import replace

from harness.configuration import EngineConfig, Toggle
from harness.engine.device import Device
from harness.isolation.ran import Ran
from harness.outcome import Outcome
from harness.program import Drain, Program, Prompt, Step, Submit
from harness.search.finding import Finding
from harness.trace import RequestTrace, Trace, TraceStep

PROGRAM = Program(
    config=EngineConfig(toggle=Toggle(threshold=1), patch="attempt-1"),
    operations=(Submit(prompt=Prompt(7, 5, 9)), Step(count=2), Submit(count=2, prompt=(1, 2, 3)), Drain()),
)
FOUND = PROGRAM.model_copy(update={"operations": (*PROGRAM.operations, Step(count=3), Drain())})
FAILS = Outcome(kind="fails", check="I1-shapes", step=3, text="length of input_ids, in DECODE of 3 requests, is 2")
RAISES = Outcome(kind="raises", step=3, text="RuntimeError: The size of tensor a (160) at 0x7f00aa")
DIES = Outcome(kind="dies", step=3, text="signal 11")
HANGS = Outcome(kind="hangs", step=3, text="no step for 60 s")
PASSES = Outcome(kind="passes")

STEPS = [
    TraceStep(0, "EXTEND", (0,), tokens_in=9, tokens_out=(1,), kv_free=90, waiting=2),
    TraceStep(1, "TARGET_VERIFY", (0,), tokens_in=16, padded_size=2, tokens_out=(2,), accepted=(1,), kv_free=85),
    TraceStep(2, "EXTEND", (1, 2), tokens_in=6, tokens_out=(1, 1), kv_free=79),
    TraceStep(3, "DECODE", (0, 1, 2), tokens_in=2),  # broken off: nothing was read after it
]
REQUESTS = [
    RequestTrace(0, (1,) * 9, output=[2, 3, 4]),
    RequestTrace(1, (1, 2, 3), output=[4], finish_reason="abort", aborted=True),
    RequestTrace(2, (1, 2, 3), output=[4]),
]
RAN = Ran(
    PROGRAM,
    FAILS,
    until=PROGRAM,
    trace=Trace(steps=STEPS, requests=REQUESTS),
    message="step 3, I1-shapes: length of input_ids, in DECODE of 3 requests, is 2, must be 3\n```",
)
FINDING = Finding(
    ran=RAN,
    found=FOUND,
    device=Device.CPU,
    seed=7,
    confirmations=[FAILS, FAILS, FAILS],
    variants=[],
    environment="sglang: 0.5.12.post1",
)


def lost(outcome: Outcome, **of_the_run: str) -> Finding:
    """Of a process that took its rows with it."""
    until = PROGRAM.model_copy(update={"operations": PROGRAM.operations[:3]})
    ran = replace(RAN, outcome=outcome, trace=Trace(), until=until, message="", **of_the_run)
    return replace(FINDING, ran=ran, confirmations=[outcome] * 3)


RAISE = replace(FINDING, ran=replace(RAN, outcome=RAISES), confirmations=[])
DEATH = replace(
    lost(DIES, output="Fatal Python error: Segmentation fault"),
    device=Device.CUDA,
    variants=[("CUDA_LAUNCH_BLOCKING=1", RAISES), ("without CUDA graphs", PASSES)],
)
HANG = replace(lost(HANGS), ran=replace(lost(HANGS).ran, message="Thread 1:\n  File patch.py"))
FLAKY = replace(FINDING, confirmations=[FAILS, PASSES, FAILS])
EVERY = [FINDING, RAISE, DEATH, HANG, FLAKY]
