"""Warm engines, shared by threads."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.configuration import EngineConfig, Toggle
from harness.engine.device import Device
from harness.isolation.engines import Engines
from harness.isolation.messages import Run
from harness.isolation.nursery import Nursery
from harness.program import Drain, Program, Submit

pytestmark = pytest.mark.xdist_group("children")
PROGRAM = Program(
    config=EngineConfig(toggle=Toggle(threshold=1), graphs=(), max_running_requests=2),
    operations=(Submit(max_new_tokens=9), Drain()),
)


def test_who_is_patient_waits_for_a_busy_engine(device: Device) -> None:
    with Nursery(device) as nursery, Engines(nursery, most=3) as engines, ThreadPoolExecutor(3) as pool:
        runs = [pool.submit(engines.run, Run(PROGRAM), patient=True) for _ in range(6)]
        assert [run.result().outcome.kind for run in runs] == ["passes"] * 6
        assert engines.boots == 1
