"""Warm engines, shared by threads, and the process that they are forked from."""

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.configuration import EngineConfig, ModelPair, Toggle
from harness.engine.device import Device
from harness.errors import RefusedConfiguration
from harness.isolation.engines import Engines
from harness.isolation.messages import Run
from harness.isolation.nursery import TEMPLATE_SOURCES, Nursery
from harness.models import BUILT_IN
from harness.program import Drain, Program, Submit

pytestmark = pytest.mark.xdist_group("children")
PROGRAM = Program(
    config=EngineConfig(toggle=Toggle(threshold=1), graphs=(), max_running_requests=2),
    operations=(Submit(max_new_tokens=9), Drain()),
)


def test_what_is_refused_is_refused_again(device: Device) -> None:
    no_draft = ModelPair(target=BUILT_IN.target, draft=BUILT_IN.target)
    refused = PROGRAM.model_copy(update={"config": PROGRAM.config.model_copy(update={"models": no_draft})})
    with Nursery(device) as nursery, Engines(nursery) as engines:
        for _ in range(2):
            with pytest.raises(RefusedConfiguration, match="no EAGLE-3 draft"):
                engines.run(Run(refused))
        assert engines.run(Run(PROGRAM)).outcome.kind == "passes"


def test_who_is_patient_waits_for_a_busy_engine(device: Device) -> None:
    with Nursery(device) as nursery, Engines(nursery, most=3) as engines, ThreadPoolExecutor(3) as pool:
        runs = [pool.submit(engines.run, Run(PROGRAM), patient=True) for _ in range(6)]
        assert [run.result().outcome.kind for run in runs] == ["passes"] * 6
        assert engines.boots == 1


def test_ctrl_c_while_sglang_is_imported_says_nothing() -> None:
    """The process that children are forked from hears of it as the command does, which answers it."""
    amid_the_import = (
        "import signal, harness.isolation.inside as inside\n"
        "inside.make_ready = lambda *_: signal.raise_signal(signal.SIGINT)\n"
        "import harness.isolation.template"
    )
    environment = os.environ | {TEMPLATE_SOURCES: "[]"}
    ended = subprocess.run([sys.executable, "-c", amid_the_import], capture_output=True, check=False, env=environment)
    assert (ended.returncode, ended.stderr) == (128 + signal.SIGINT, b"")
