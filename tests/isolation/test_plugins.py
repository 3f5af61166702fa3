"""Plugins of SGLang under test: one that hooks nothing says so."""

from pathlib import Path

import pytest

from harness.configuration import EngineConfig, Toggle
from harness.engine.device import Device
from harness.isolation.messages import Run
from harness.isolation.nursery import Nursery
from harness.program import Drain, Program, Submit

pytestmark = pytest.mark.xdist_group("children")
HOOK = """
def register():
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    target = "sglang.srt.managers.scheduler.Scheduler.{method}"
    HookRegistry.register(target, lambda original, *args: original(*args), HookType.AROUND)
"""


@pytest.mark.parametrize(
    ("method", "kind"),
    [
        ("process_batch_results", "raises"),
        pytest.param("process_batch_result", "passes", marks=pytest.mark.slow),  # each imports SGLang anew
    ],
    ids=["wrong", "right"],
)
def test_a_hook_on_a_name_that_sglang_hasnt(device: Device, tmp_path: Path, method: str, kind: str) -> None:
    """SGLang writes that into its log, and serves as if there were no plugin."""
    (tmp_path / "mine.py").write_text(HOOK.format(method=method))
    patch = ("warm", f"{tmp_path / 'mine.py'}:register")
    config = EngineConfig(toggle=Toggle(threshold=1), patch=patch, graphs=(), max_running_requests=2)
    with Nursery(device, sources=patch[1:]) as nursery:
        ran = nursery.run(Run(Program(config=config, operations=(Submit(max_new_tokens=9), Drain()))))
    assert ran.outcome.kind == kind, ran.outcome
    if kind == "raises":
        assert f"weren't applied, to sglang.srt.managers.scheduler.Scheduler.{method}" in (ran.outcome.text or "")
