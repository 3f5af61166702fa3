"""The stage of the search, with a search that is none: what of it an interruption leaves."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.search.progress import Progress
from harness.search.search import Plan as SearchPlan
from harness.validation import searching
from harness.validation.stage import INTERRUPTED, Coverage, Stage, Status
from tests.unit.validation.reports import plan


def search_of(programs: int, crossing: int, interrupted: bool, asked: list[SearchPlan]) -> Any:
    """A class in the place of `Search`."""

    class NoSearch:
        def __init__(self, wanted: SearchPlan) -> None:
            asked.append(wanted)
            self.progress, self.interrupted = Progress(), interrupted
            self.progress.programs, self.progress.crossing = programs, crossing

        def run(self, *_: object) -> None:
            return None

    return NoSearch


def test_an_interrupted_search_goes_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With other programs, and both parts count."""
    lab: Any = SimpleNamespace(
        plan=plan(tmp_path, seed=3), workers=("v1",), progress=Progress(), coverage=Coverage, watch=None, pools=()
    )
    asked: list[SearchPlan] = []
    monkeypatch.setattr(searching, "Search", search_of(20, 5, interrupted=True, asked=asked))
    begun = searching.searched(lab, 60.0)
    assert (begun.status, begun.said, begun.coverage.programs) == (Status.UNPROVEN, INTERRUPTED, 20)
    begun = begun.model_copy(update={"coverage": begun.coverage.model_copy(update={"configurations": 7})})

    monkeypatch.setattr(searching, "Search", search_of(30, 0, interrupted=False, asked=asked))
    earlier = begun.model_copy(update={"seconds": 40.0})
    ended: Stage = searching.searched(lab, 20.0, earlier)
    assert ended.status is Status.PASSED
    assert (ended.coverage.programs, ended.coverage.crossing) == (50, 5)
    assert ended.seconds >= 40
    first, then = asked
    assert (first.seed, then.seed) == (3, 23)
    assert then.grid == (*first.grid[7:], *first.grid[:7])
