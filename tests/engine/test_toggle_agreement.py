"""Ranks that would decide differently don't start; two in processes of their own, as SGLang's are."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

from harness.toggle.agreement import check_agreement
from harness.toggle.policy import Policy
from harness.toggle.settings import Settings

RANK = """
import sys
from datetime import timedelta
from types import SimpleNamespace
import torch.distributed as dist
from harness.toggle import agreement
from harness.toggle.settings import Settings

store, rank, *thresholds = sys.argv[1:]
dist.init_process_group("gloo", init_method=f"file://{store}", rank=int(rank), world_size=2)
group = SimpleNamespace(world_size=2, cpu_group=dist.group.WORLD)
for threshold, patience_s in zip(thresholds, (60, 60, 1)):
    agreement.PATIENCE = timedelta(seconds=patience_s)
    try:
        agreement.check_agreement(Settings.read({"SPEC_TOGGLE_THRESHOLD": threshold}), group)
    except ValueError as error:
        print(f"{type(error).__name__}: {error}", flush=True)
    else:
        print("agreed", flush=True)
sys.stdin.read()  # one that has no more to ask stays
"""


def said_by_ranks(store: Path, *thresholds: list[str]) -> list[list[str]]:
    """What each of two ranks says to one threshold after the other."""
    started = [
        subprocess.Popen(
            [sys.executable, "-c", RANK, str(store), str(rank), *own],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank, own in enumerate(thresholds)
    ]
    said = [_lines(process, len(own)) for process, own in zip(started, thresholds, strict=True)]
    for process in started:
        process.communicate()
    return said


def _lines(process: "subprocess.Popen[str]", count: int) -> list[str]:
    assert process.stdout is not None
    return [process.stdout.readline().strip() for _ in range(count)]


def test_one_rank_needs_no_group() -> None:
    check_agreement(Settings(Policy(5)), SimpleNamespace(world_size=1))


def test_two_ranks_agree_or_differ_or_one_has_no_toggle(tmp_path: Path) -> None:
    first, second = said_by_ranks(tmp_path / "store", ["5", "5", "5"], ["5", "6"])
    assert first[0] == second[0] == "agreed"
    assert first[1] == second[1]
    assert first[1].startswith("BadSetting: rank 0 has SPEC_TOGGLE_THRESHOLD=5 ")
    assert "rank 1 has SPEC_TOGGLE_THRESHOLD=6 " in first[1]
    assert first[1].endswith(": set the same on every node")
    assert first[2] == "BadSetting: not all ranks have a toggle: set the SPEC_TOGGLE_ variables on every node"
