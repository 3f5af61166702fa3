"""Closed loops in SGLang's own loop: every token right, at each concurrency; and the commands around them."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness.bench import profile, stepping, switches
from harness.bench.engine_process import answer
from harness.bench.tasks import Profiling, Stepping, Switching, Task
from harness.bench.throughput import Throughput
from harness.configuration import EngineConfig, Toggle
from harness.engine.device import Device
from tests.support.engines import Engines

CONFIG = EngineConfig(toggle=Toggle(threshold=1, strategy="plain"), graphs=(1, 2, 4))


def task(concurrency: int, requests: int) -> Task:
    return Task(
        prompt_tokens=16,
        lengths=(9,) * requests,
        in_flight=(concurrency,) * requests,
        first_seed=1,
        known=True,
    )


@pytest.mark.xdist_group("throughput")
def test_concurrency_1_and_3(boot: Engines) -> None:
    """Speculating at 1, which the steps of the replies show, and plainly at 3."""
    engine = boot(CONFIG)
    for concurrency, requests in ((1, 2), (3, 5)):
        line = answer(engine, task(concurrency, requests)).line(concurrency)
        assert line.ok, line.replies
        assert f"C={concurrency:3d} | {requests} requests | " in str(line)
        assert line.tokens_per_step is not None
        assert (line.tokens_per_step > 2) == (concurrency == 1)


@pytest.mark.xdist_group("throughput")
def test_switches_have_a_cost_each(boot: Engines) -> None:
    found = switches.measure(boot(CONFIG), Switching(threshold=1, prompt_tokens=16))
    assert len(found.off_ms) == len(found.on_ms) == switches.CYCLES
    assert found.spec_step_ms is not None
    assert found.plain_step_ms is not None


@pytest.mark.xdist_group("throughput")
def test_a_step_takes_its_time(boot: Engines) -> None:
    """Each request makes one token in a plain step, at 3, and more in a spec step, at 1."""
    engine = boot(CONFIG)
    for batch_size in (1, 3):
        found = stepping.measure(engine, Stepping(batch_size=batch_size, prompt_tokens=16))
        tokens_a_step = found.tokens_per_s * found.step_ms / 1e3 / batch_size
        assert tokens_a_step == pytest.approx(1) if batch_size == 3 else 2 < tokens_a_step <= 4


@pytest.mark.xdist_group("throughput")
def test_a_profile_names_the_phases(boot: Engines, tmp_path: Path) -> None:
    """Of spec steps at 1 and of plain steps at 3, which have no draft forward."""
    engine = boot(CONFIG)
    for batch_size in (1, 3):
        trace = tmp_path / f"{batch_size}.json.gz"
        profiled = profile.measure(engine, Profiling(batch_size=batch_size, prompt_tokens=16, trace=trace))
        found = profiled.breakdown
        assert {"schedule", "run batch", "target forward", "process results"} < found.phases.keys()
        assert ("draft forward" in found.phases) == (batch_size == 1)
        assert bool(found.kernels) == (engine.device is Device.CUDA)
        if found.kernels:
            gpu = {name: phase.gpu_ms for name, phase in found.phases.items()}
            assert gpu["target forward"] == max(gpu.values())
        assert profiled.kv_tokens[0] >= 16 + profile.STRETCH.settled_tokens
    scheduler = engine._session.scheduler
    assert "run_batch" not in vars(scheduler)
    assert "forward" not in vars(scheduler.tp_worker.model_runner)


@pytest.mark.xdist_group("throughput")
def test_a_profile_of_strategy_warm(boot: Engines, tmp_path: Path) -> None:
    """Whose draft follows each plain step."""
    config = CONFIG.model_copy(update={"toggle": Toggle(threshold=1, strategy="warm")})
    wanted = Profiling(batch_size=3, prompt_tokens=16, trace=tmp_path / "3.json.gz")
    found = profile.measure(boot(config), wanted).breakdown
    assert {"draft forward", "draft's part of the toggle"} < found.phases.keys()


COMMAND = (sys.executable, "-m", "harness.cli", "bench")
TINY = ("--worker", "v2", "--prompt-tokens", "16", "--new-tokens", "12")


@pytest.mark.slow
@pytest.mark.xdist_group("throughput-command")
def test_the_commands(device: Device, tmp_path: Path) -> None:
    """All engines of V2 with simulated acceptance, then the threshold from what was written."""
    options = ["--concurrency", "1,3", "--threshold", "1", "--rounds", "2", "--accept-length", "3"]
    command = [*COMMAND, "throughput", "--device", device, *TINY, *options, "--output", str(tmp_path)]
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    results = Throughput.from_json(done.stdout)
    assert results == Throughput.from_json((tmp_path / "throughput.json").read_text())
    assert len(results.records) == 16
    for record in results.records:
        spec = record.engine == "always-spec" or (record.engine != "plain" and record.concurrency == 1)
        assert record.tokens_per_step is None or (record.tokens_per_step > 2) == spec
    assert (tmp_path / "throughput.svg").read_text().startswith("<?xml")
    assert len((tmp_path / "throughput.csv").read_text().splitlines()) == 17
    command = [*COMMAND, "threshold", str(tmp_path / "throughput.json"), "--json"]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert found["verdict"] in ("never", "crosses", "always")


@pytest.mark.slow
@pytest.mark.xdist_group("throughput-command")
def test_what_was_measured_survives_an_interruption(device: Device, tmp_path: Path) -> None:
    options = ["--concurrency", "1,2", "--engines", "plain,always-spec", "--rounds", "1000", "--output", str(tmp_path)]
    command = [*COMMAND, "throughput", "--device", device, *TINY, *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for said in process.stdout:
            if "C=  2" in said:
                break
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
        assert process.wait() == 130
    assert "bench throughput" in rest
    assert Throughput.from_json((tmp_path / "throughput.json").read_text()).records
    assert (tmp_path / "throughput.svg").exists()


@pytest.mark.slow
@pytest.mark.xdist_group("throughput-command")
def test_live_servers(device: Device, tmp_path: Path) -> None:
    options = ["--server", "--concurrency", "1,3", "--engines", "always-spec,warm", "--threshold", "1", "--rounds", "1"]
    command = [*COMMAND, "throughput", "--device", device, *options, "--worker", "v1", "--prompt-tokens", "16"]
    done = subprocess.run([*command, "--new-tokens", "12", "--output", str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ok: 12/12" in done.stdout
    assert len(Throughput.from_json((tmp_path / "throughput.json").read_text()).records) == 4


@pytest.mark.slow
@pytest.mark.xdist_group("throughput-command")
def test_a_workload(device: Device, tmp_path: Path) -> None:
    options = ["--pattern", "ramp", "--low", "1", "--high", "3", "--threshold", "2", "--requests", "8", "--rounds", "1"]
    command = [
        *COMMAND,
        "workload",
        "--device",
        device,
        *TINY,
        *options,
        "--pattern",
        "ramp",
        "--output",
        str(tmp_path),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ok: 8/8" in done.stdout
    assert "switching off, warm" in done.stdout


@pytest.mark.slow
@pytest.mark.xdist_group("throughput-command")
def test_a_profile(device: Device, tmp_path: Path) -> None:
    options = ["--batch-size", "1,3", "--threshold", "2", "--engines", "plain,warm", "--prompt-tokens", "16", "--json"]
    command = [*COMMAND, "profile", "--device", device, "--worker", "v2", *options, "--output", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    profiles = json.loads(done.stdout)
    assert profiles == json.loads((tmp_path / "profile.json").read_text())
    measured = [(profiled["engine"], profiled["batch_size"]) for profiled in profiles]
    assert measured == [("plain", 1), ("warm", 1), ("plain", 3), ("warm", 3)]
    assert all((tmp_path / f"trace-{engine}-{size}.json.gz").exists() for engine, size in measured)
    assert "warm, batch of 3: step " in done.stderr
