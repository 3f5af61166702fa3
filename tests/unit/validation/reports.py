"""Stages and reports made by hand."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness.engine.device import Device
from harness.outcome import Outcome
from harness.report.validation.report import PatchFile, Report
from harness.validation.plan import Plan
from harness.validation.profile import Profile
from harness.validation.stage import Coverage, Curve, Failure, Stage, Status
from harness.validation.verdict import BY_PROFILE, judge, total

COVERAGE = Coverage(
    programs=9,
    steps=300,
    crossing=4,
    configurations=2,
    labels={"switched off": 4, "switched on": 3},
    looked={"I1-shapes": 300, "I11-draft": 100},
    looked_in_part={"I11-draft": 10},
    answered={"I11-draft": 88},
    imported=("sglang/srt/mine.py",),
    skipped={"I11-draft: no accepted length is known": 12},
)
PASSED = Stage(name="main job", status=Status.PASSED, said="all checks pass", seconds=1.5, coverage=COVERAGE)
BY_CHOICE = Stage(name="soak", status=Status.LEFT_OUT, said=BY_PROFILE)
FAILED = Stage(
    name="search",
    status=Status.FAILED,
    said="a random program: check I9-tokens fails at step 2: <3> | 4",
    seconds=20.0,
    failure=Failure(
        outcome=Outcome(kind="fails", check="I9-tokens", step=2),
        message="step 2, I9-tokens: <b>1</b> & 2\x00\x1b[0m",
        folder="findings/mine-I9-tokens-step-2",
        operations=2,
        cold=(3, 3),
    ),
)
UNPROVEN = Stage(name="acceptance", status=Status.UNPROVEN, said="no spec step after a plain stretch")
SIZES = (1, 2, 4)
CURVES = tuple(
    Curve(engine=engine, batch_sizes=SIZES, step_ms=(1.0, 1.1, 1.3), tokens_per_s=(1000.0, 1900.0, 3100.0))
    for engine in ("plain, beside v1", "v1, patched", "v1, always-spec")
)
MEASURED = Stage(
    name="step times", status=Status.PASSED, said="measured", facts=(("v1, 4 requests", "1.02"),), curves=CURVES
)


def plan(folder: Path, **changes: Any) -> Plan:
    given: dict[str, Any] = {"patch": "warm", "device": Device.CPU, "profile": Profile.QUICK, "output": folder}
    return Plan(**(given | changes))


def report(*stages: Stage) -> Report:
    verdict, reasons = judge(stages, most_skipped=0.1)
    text = "+<script>alert(1)</script>\n"
    return Report(
        verdict=verdict,
        reasons=tuple(reasons),
        patch="mine.diff",
        patch_files=(PatchFile(name="patch.diff", sha256="0" * 64, text=text),),
        release="0.5.12.post1",
        device="cpu",
        gpus=(),
        profile="quick",
        workers=("v1", "v2"),
        threshold=5,
        seed=0,
        started=datetime(2026, 11, 30, 10, 0, tzinfo=UTC),
        seconds=99.0,
        command="toggle-harness validate mine.diff",
        stages=stages,
        coverage=total(stages),
        environment="sglang: 0.5.12.post1",
    )
