"""Shards, Hypothesis over them and its example database, with what fails told by a function."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis.database import DirectoryBasedExampleDatabase, InMemoryExampleDatabase

from harness.configuration import EngineConfig, Toggle
from harness.errors import UsageError
from harness.isolation.ran import Ran
from harness.outcome import Outcome
from harness.program import Program, Step
from harness.search import known
from harness.search.explore import explore
from harness.search.shards import EXAMPLES, Shard, shards
from harness.search.shrink import Shortest

CONFIG = EngineConfig(toggle=Toggle(threshold=2), max_running_requests=8)
OTHER = CONFIG.model_copy(update={"graphs": ()})


class Runner:
    """Fails the programs that a function says, and keeps what it was given."""

    def __init__(self, wrong: Callable[[Program], bool]) -> None:
        self._wrong = wrong
        self.programs: list[Program] = []

    def __call__(self, program: Program) -> Ran:
        self.programs.append(program)
        failed = Outcome(kind="fails", check="I9-tokens", step=2)
        return Ran(program, failed if self._wrong(program) else Outcome(kind="passes"), program)


def requests(program: Program) -> int:
    return sum(submit.count for submit in program.submits)


def test_shards_go_round_the_grid_with_seeds_of_their_own() -> None:
    drawn = list(shards([CONFIG, OTHER], seed=1, examples=2 * EXAMPLES + 3))
    assert [shard.config for shard in drawn] == [CONFIG, OTHER, CONFIG]
    assert [shard.examples for shard in drawn] == [EXAMPLES, EXAMPLES, 3]
    assert len({shard.seed for shard in drawn}) == 3
    assert drawn == list(shards([CONFIG, OTHER], seed=1, examples=2 * EXAMPLES + 3))


def test_the_same_seed_gives_the_same_programs() -> None:
    seen = []
    for seed in (5, 5, 6):
        runner = Runner(lambda _: False)
        assert not explore(Shard(0, CONFIG, seed, 10), runner, Shortest())
        seen.append(runner.programs)
    assert seen[0] == seen[1] != seen[2]


def test_a_failure_is_shrunk_and_no_program_runs_twice() -> None:
    runner, shortest = Runner(lambda program: requests(program) >= 3), Shortest()
    assert explore(Shard(0, CONFIG, 1), runner, shortest)
    assert shortest.ran is not None
    assert requests(shortest.ran.program) == 3
    assert len(shortest.ran.program.operations) <= 3
    assert len(set(runner.programs)) == len(runner.programs)


def test_an_error_comes_through() -> None:
    def run(program: Program) -> Ran:
        raise UsageError("the journal can't be written")

    with pytest.raises(UsageError, match="journal"):
        explore(Shard(0, CONFIG, 1), run, Shortest())


def test_a_known_failure_is_tried_first() -> None:
    database = known.Of(InMemoryExampleDatabase(), CONFIG)
    first = Shortest()
    runner = Runner(lambda program: requests(program) >= 9)
    assert explore(Shard(0, CONFIG, 1, 100), runner, first, database)
    again = Runner(lambda program: requests(program) >= 9)
    assert explore(Shard(0, CONFIG, 2, 100), again, Shortest(), database)
    assert requests(again.programs[0]) >= 9


def test_configurations_that_failed_come_first(tmp_path: Path) -> None:
    database = known.open_database(str(tmp_path / "examples"))
    known.remember(database, OTHER)
    assert known.failed_before(database, [CONFIG, OTHER]) == [OTHER]
    known.forget(database, OTHER)
    assert known.failed_before(database, [CONFIG, OTHER]) == []


def test_a_corrupt_database_loses_nothing(tmp_path: Path) -> None:
    database = known.open_database(str(tmp_path))
    known.remember(database, OTHER)
    database.save(known.FAILED, b"\xff not JSON")
    assert known.failed_before(database, [CONFIG, OTHER]) == [OTHER]
    assert list(database.fetch(known.FAILED)) == [OTHER.model_dump_json().encode()]


def test_examples_that_are_no_examples_are_passed_over(tmp_path: Path) -> None:
    database = known.Of(DirectoryBasedExampleDatabase(tmp_path), CONFIG)
    assert explore(Shard(0, CONFIG, 1), Runner(lambda program: requests(program) > 1), Shortest(), database)
    for file in tmp_path.rglob("*"):
        if file.is_file():
            file.write_bytes(b"\x00\xffgarbage")
    assert explore(Shard(0, CONFIG, 1), Runner(lambda program: requests(program) > 1), Shortest(), database)


@pytest.mark.parametrize("where", ["file/below", "redis://localhost:1/0"])
def test_no_such_database(tmp_path: Path, where: str) -> None:
    (tmp_path / "file").write_text("")
    place = where if where.startswith("redis") else str(tmp_path / where)
    with pytest.raises(UsageError, match="example database"):
        known.open_database(place)


def test_a_step_alone_is_a_program() -> None:
    """Hypothesis' simplest program is a short one, not a setting of a long one."""
    shortest = Shortest()
    assert explore(Shard(0, CONFIG, 1), Runner(lambda _: True), shortest)
    assert shortest.ran is not None
    assert shortest.ran.program.operations in ((), (Step(),))
