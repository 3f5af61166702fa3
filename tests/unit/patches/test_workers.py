"""What a patch says of itself, read from its file."""

from pathlib import Path

import pytest

from harness.configuration import Strategy, Worker
from harness.patches.stack import Patch
from harness.patches.workers import strategy_of, written_for


@pytest.mark.parametrize(
    ("patch", "worker", "strategy"),
    [
        ("warm", None, "warm"),
        ("fault-08", Worker.V1, "warm"),
        ("fault-36", Worker.V1, "plain"),
        (("some.diff", "fault-38"), Worker.V2, "plain"),
        ("some.diff", None, "warm"),
    ],
)
def test_what_it_is_for(patch: Patch, worker: Worker | None, strategy: Strategy) -> None:
    assert (written_for(patch), strategy_of(patch)) == (worker, strategy)


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "patch.py"
    file.write_text('STRATEGY = "plain"\n')
    assert (written_for(str(file)), strategy_of(str(file))) == (None, "plain")
