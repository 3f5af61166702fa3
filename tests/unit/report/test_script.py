"""The standalone script: valid Python, as ruff formats it, with the same program in it."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.configuration import EngineConfig, ModelPair, Toggle
from harness.outcome import Outcome
from harness.patches.beside import patch_beside
from harness.program import Abort, Drain, Flush, Program, Retract, Submit
from harness.report.script import text
from tests.unit.report.findings import DIES, FAILS, HANGS, PROGRAM, RAISES

ROOT = Path(__file__).parents[3]
WIDE = Program(
    config=EngineConfig(worker="v2", models=ModelPair(target="/it's", draft="/b"), toggle=Toggle(threshold=5)),
    operations=(
        Submit(prompt=tuple(range(60)), stop_token=7),
        Submit(prompt=(1,), temperature=0.5, logprobs=True),
        Abort(request=0),
        Retract(),
        Flush(),
        Drain(),
    ),
)
SCRIPTS = {
    f"{name}_{outcome.kind}_{own}.py": (program, outcome, own)
    for name, program in (("short", PROGRAM), ("wide", WIDE), ("empty", Program(config=PROGRAM.config)))
    for outcome in (FAILS, RAISES, DIES, HANGS)
    for own in (False, True)
}


def written(program: Program, outcome: Outcome, own: bool) -> str:
    return text(beside(program) if own else program, outcome, "patch x: check fails")


def beside(program: Program) -> Program:
    return program.model_copy(update={"config": program.config.model_copy(update={"patch": "patch.py"})})


@pytest.mark.parametrize("name", SCRIPTS)
def test_its_program_is_the_program(name: str) -> None:
    program, outcome, own = SCRIPTS[name]
    names: dict[str, Any] = {"__name__": "reproduce", "__file__": "/somewhere/mine/reproduce.py"}
    exec(compile(written(program, outcome, own), name, "exec"), names)
    if own:
        program = patch_beside(beside(program), Path("/somewhere/mine"))
    assert names["PROGRAM"] == program


def test_as_ruff_has_it(tmp_path: Path) -> None:
    pytest.importorskip("ruff")
    for name, (program, outcome, own) in SCRIPTS.items():
        (tmp_path / name).write_text(written(program, outcome, own))
    for job in (["check", "--no-cache"], ["format", "--check", "--no-cache"]):
        command = [sys.executable, "-m", "ruff", *job, "--config", str(ROOT / "pyproject.toml"), str(tmp_path)]
        done = subprocess.run(command, cwd=ROOT, env=os.environ, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
