"""The three attempts fail with their historical errors where nothing looks on, and fail the main job."""

import pytest

from harness.cases import CASES, load
from harness.checks import Checks
from harness.outcome import outcome_of
from harness.program import Program
from tests.support.engines import Engines

HISTORICAL = {
    "attempt-1": "RuntimeError: The size of tensor a (160) must match the size of tensor b (2) "
    "at non-singleton dimension 0",
    "attempt-2": "ValueError: too many values to unpack (expected 2)",
}
"""As they were reported; of the third only that every request failed."""


@pytest.mark.parametrize(("name", "error"), HISTORICAL.items())
def test_the_error_of_the_story(boot: Engines, name: str, error: str) -> None:
    program = load(CASES / name).program
    seen = outcome_of(boot(program.config), program, None)
    boot.close()
    assert (seen.kind, seen.text) == ("raises", error)


@pytest.mark.parametrize("name", ["attempt-1", "attempt-2", "attempt-3"])
@pytest.mark.parametrize("checked", [True, False])
def test_the_main_job_fails(boot: Engines, name: str, checked: bool) -> None:
    """1, 10, 3 at threshold 5: the first plain step, as in the benchmark."""
    config = load(CASES / name).program.config
    assert config.toggle is not None
    config = config.model_copy(update={"toggle": config.toggle.model_copy(update={"threshold": 5})})
    program = Program.from_batch_sizes(config, [1, 10, 3])
    seen = outcome_of(boot(config), program, Checks(program) if checked else None)
    boot.close()
    assert seen.kind in ("fails", "raises")
    assert seen.step == 6
