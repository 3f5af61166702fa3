#!/usr/bin/env python3
"""Where a decode step's time goes in SGLang's own toggle, while it is off: sglang 0.5.17, `--speculative-adaptive`.

    PYTHONPATH=. python scripts/profile_sglang_toggle.py fixtures/shapes/llama-3.1-8b OUT [ENGINE...]

Needs a GPU and an environment with that release, which this harness doesn't run on: of the harness it takes the
breakdown of a trace alone. Engines are plain, adaptive, with 3 steps below 64 requests and 0 from 64 on, and
skip-extend, which is that with SGLANG_SPEC_SKIP_ZERO_STEP_DRAFT_EXTEND=1. Each is in a process of its own; OUT gets a
trace of each. Exit code 1 if one leaves none.
"""

import gzip
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from harness.bench.breakdown import WINDOW, breakdown

BATCH_SIZE, PROMPT_TOKENS, STEPS, ANSWER_TOKENS = 64, 64, 100, 128
CONTEXT = 2048
"""The draft's; the target has more, which SGLang refuses."""
TARGET_STEPS = ("step[TARGET_VERIFY", "step[DECODE")
"""Spans of the target's forwards (`build_step_span_name`, utils/profile_utils.py)."""
ENGINES = {"plain": {}, "adaptive": {}, "skip-extend": {"SGLANG_SPEC_SKIP_ZERO_STEP_DRAFT_EXTEND": "1"}}
ADAPTIVE = {"1": {"candidate_steps": [3]}, str(BATCH_SIZE): {"candidate_steps": [0]}}


def arguments(name: str, shape: Path, out: Path) -> dict[str, object]:
    """Of `sglang.Engine`."""
    common = {
        "model_path": str(shape / "target"),
        "load_format": "dummy",
        "skip_tokenizer_init": True,
        "dtype": "bfloat16",
        "context_length": CONTEXT,
        "attention_backend": "triton",
        "sampling_backend": "pytorch",
        "disable_radix_cache": True,
        "mem_fraction_static": 0.6,
        "max_running_requests": BATCH_SIZE,
        "cuda_graph_bs_decode": [1, 2, 4, 8, 16, 32, BATCH_SIZE],
        "log_level": "info",
    }
    if name == "plain":
        return common
    config = out / "adaptive.json"
    config.write_text(json.dumps(ADAPTIVE))
    return common | {
        "speculative_algorithm": "EAGLE3",
        "speculative_draft_model_path": str(shape / "draft"),
        "speculative_draft_load_format": "dummy",
        "speculative_num_steps": 3,
        "speculative_eagle_topk": 1,
        "speculative_num_draft_tokens": 4,
        "speculative_adaptive": True,
        "speculative_adaptive_config": str(config),
    }


def batch(engine: Any) -> float:
    """Tokens per second of one full batch."""
    prompts = [[1000 + 64 * number + place for place in range(PROMPT_TOKENS)] for number in range(BATCH_SIZE)]
    sampling = {"temperature": 0, "max_new_tokens": ANSWER_TOKENS, "ignore_eos": True}
    started = time.perf_counter()
    engine.generate(input_ids=prompts, sampling_params=sampling)
    return BATCH_SIZE * ANSWER_TOKENS / (time.perf_counter() - started)


def measure(name: str, shape: Path, out: Path) -> None:
    """One engine: its rate, best of two, then a trace of its first decode steps."""
    import sglang

    engine = sglang.Engine(**arguments(name, shape, out))
    rate = max(batch(engine) for _ in range(2))
    print(f"{name}: {rate:.0f} tok/s, {BATCH_SIZE / rate * 1e3:.3f} ms a step, prefill included", flush=True)
    traces = out / f"trace-{name}"
    engine.start_profile(
        output_dir=str(traces),
        num_steps=STEPS,
        activities=["CPU", "GPU"],
        profile_by_stage=True,
        with_stack=False,
        record_shapes=False,
    )
    batch(engine)
    engine.shutdown()


def report(name: str, out: Path) -> bool:
    """Print the breakdown by SGLang's own spans; returns whether there is a trace."""
    traces = list(out.glob(f"trace-{name}/*DECODE*"))
    if not traces:
        print(f"{name}: no trace of decode steps in {out}/trace-{name}: see above how its engine ended")
        return False
    with gzip.open(traces[0], "rt") as file:
        events = json.load(file)["traceEvents"]
    spans = [event for event in events if event.get("cat") == "user_annotation" and event.get("ph") == "X"]
    launches = [event for event in events if event.get("cat") == "cuda_runtime" and event.get("ph") == "X"]
    thread = max({event["tid"] for event in launches}, key=[event["tid"] for event in launches].count)
    own = [event for event in events if event.get("ph") == "X" and event.get("tid") == thread]
    begin, end = min(event["ts"] for event in own), max(event["ts"] + event["dur"] for event in own)
    window = {"ph": "X", "cat": "user_annotation", "name": WINDOW, "ts": begin, "dur": end - begin, "tid": thread}
    names = sorted({event["name"] for event in spans if event["tid"] == thread})
    steps = sum(event["name"].startswith(TARGET_STEPS) for event in spans)
    if not steps:
        print(f"{name}: {traces[0]} has none of {TARGET_STEPS}, but {names}: is this sglang 0.5.17?")
        return False
    found = breakdown([window, *events], names, steps)
    print(f"{name}: {steps} steps traced, {found.step_ms:.3f} ms a step, the GPU busy {found.busy_ms:.3f} ms")
    for phase, times in found.phases.items():
        print(
            f"  {phase:40} host {times.host_ms:7.3f} ms, waiting {times.waiting_ms:7.3f} ms, "
            f"GPU {times.gpu_ms:7.3f} ms, {times.kernels:6.1f} kernels"
        )
    for kernel in found.kernels:
        print(f"    {kernel.gpu_ms:7.3f} ms {kernel.count:6.1f} x {kernel.name[:90]}")
    calls: dict[str, list[float]] = {}
    for event in own:
        if event.get("cat") in ("cuda_runtime", "cuda_driver", "cpu_op"):
            calls.setdefault(event["name"], []).append(event["dur"])
    for call in sorted(calls, key=lambda call: -sum(calls[call]))[:12]:
        print(f"    host {sum(calls[call]) / 1e3 / steps:7.3f} ms {len(calls[call]) / steps:6.1f} x {call}", flush=True)
    return True


def main() -> int:
    """Each engine in a new process, or this one's; what a trace says doesn't wait for how its engine ends."""
    shape, out, *names = sys.argv[1:]
    Path(out).mkdir(parents=True, exist_ok=True)
    if len(names) == 2 and names[0] == "--here":
        measure(names[1], Path(shape), Path(out).absolute())
        return 0
    reported = []
    for name in names or ENGINES:
        shutil.rmtree(Path(out) / f"trace-{name}", ignore_errors=True)  # of an earlier run
        subprocess.run([sys.executable, __file__, shape, out, "--here", name], env=os.environ | ENGINES[name])
        reported.append(report(name, Path(out)))
    return int(not all(reported))


if __name__ == "__main__":
    sys.exit(main())
