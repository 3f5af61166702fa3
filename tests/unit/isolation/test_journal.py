"""A journal says which step a process was in when it ended."""

from pathlib import Path

import pytest

from harness.configuration import EngineConfig
from harness.isolation.journal import Journal, JournalError, last
from harness.program import Drain, Flush, Program, Step, Submit

PROGRAM = Program(config=EngineConfig(), operations=(Submit(), Step(count=3), Flush(), Drain()))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.jsonl"


def test_nothing_began(path: Path) -> None:
    assert last(path) is None
    Journal(path).close()
    assert last(path) is None


@pytest.mark.parametrize(
    ("entries", "until"),
    [
        ([], PROGRAM.operations),
        ([("operation", 0)], (Submit(),)),
        ([("operation", 0), ("operation", 1), ("step", 0)], (Submit(), Step())),
        ([("operation", 0), ("operation", 1), ("step", 0), ("step", 1)], (Submit(), Step(count=2))),
        (
            [("operation", 1), ("step", 2), ("operation", 2), ("operation", 3), ("step", 3), ("step", 4)],
            (Submit(), Step(count=3), Flush(), Step(count=2)),
        ),
        ([("operation", 1), ("step", 2), ("operation", 2)], (Submit(), Step(count=3), Flush())),
    ],
)
def test_the_program_until_then(path: Path, entries: list[tuple[str, int]], until: tuple[object, ...]) -> None:
    journal = Journal(path)
    journal.begin(PROGRAM)
    for what, index in entries:
        getattr(journal, what)(index)
    found = last(path)
    assert found is not None
    assert found.until.operations == until
    steps = [index for what, index in entries if what == "step"]
    assert found.step == (steps[-1] if steps else None)


def test_the_next_program_takes_its_place(path: Path) -> None:
    journal = Journal(path)
    journal.begin(PROGRAM)
    journal.step(7)
    other = PROGRAM.model_copy(update={"operations": (Submit(count=2),)})
    journal.begin(other)
    found = last(path)
    assert found is not None
    assert (found.program, found.step) == (other, None)


def test_killed_while_it_wrote(path: Path) -> None:
    journal = Journal(path)
    journal.begin(PROGRAM)
    journal.operation(1)
    journal.step(0)
    with path.open("a") as file:
        file.write('{"st')
    found = last(path)
    assert found is not None
    assert (found.operation, found.step) == (1, 0)


def test_a_full_disk() -> None:
    journal = Journal(Path("/dev/full"))
    with pytest.raises(JournalError, match="No space left on device: free some space"):
        journal.step(0)


def test_no_folder(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="No such file or directory"):
        Journal(tmp_path / "nowhere" / "journal.jsonl")
