"""Warm engines, shared by threads."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.configuration import EngineConfig, ModelPair, Toggle
from harness.engine.device import Device
from harness.errors import RefusedConfiguration
from harness.isolation.engines import Engines
from harness.isolation.messages import Run
from harness.isolation.nursery import Nursery
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
