"""What a patch says of itself, read from its file."""

from pathlib import Path

import pytest

from harness.configuration import Strategy, Worker
from harness.errors import RefusedConfiguration
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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("WORKER = 'v3'", "WORKER is 'v3': write 'v1' or 'v2', or leave it out"),
        ("WORKER = 'none'", "WORKER is 'none': write 'v1' or 'v2', or leave it out"),
        ("WORKER: Worker = Worker.V1", "WORKER is Worker.V1: write 'v1' or 'v2', or leave it out"),
        ("STRATEGY = 'foo'", "STRATEGY is 'foo': write 'warm' or 'plain', or leave it out"),
        ("STRATEGY = PLAIN", "STRATEGY is PLAIN: write 'warm' or 'plain', or leave it out"),
        ("WORKER = (", r"can't be read: '\(' was never closed"),
        ("# \xe9", "can't be read: .*isn't UTF-8"),
    ],
)
def test_what_it_cant_be_for(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "patch.py"
    file.write_text(text, encoding="latin-1")
    with pytest.raises(RefusedConfiguration, match=rf"{file}:? {message}"):
        (written_for(str(file)), strategy_of(str(file)))


@pytest.mark.parametrize("text", ["WORKER: str = 'v2'", "MINE = WORKER = 'v2'", "WORKER: str\nWORKER = 'v2'"])
def test_ways_to_say_it(tmp_path: Path, text: str) -> None:
    (tmp_path / "patch.py").write_text(text)
    assert written_for(str(tmp_path / "patch.py")) is Worker.V2
