"""Never safe by omission."""

import pytest

from harness.validation.stage import Coverage, Stage, Status
from harness.validation.verdict import EARLIER, Verdict, judge, total
from tests.unit.validation.reports import BY_CHOICE, COVERAGE, FAILED, PASSED, UNPROVEN


def stage(coverage: Coverage) -> Stage:
    return PASSED.model_copy(update={"coverage": coverage})


def changed(**changes: object) -> Coverage:
    return COVERAGE.model_copy(update=changes)


def test_all_stages_passed() -> None:
    assert judge([PASSED, BY_CHOICE], most_skipped=0.1) == (Verdict.SAFE, [])
    assert Verdict.SAFE.exit_code == 0


def test_one_failed() -> None:
    later = Stage(name="soak", status=Status.LEFT_OUT, said=EARLIER)
    verdict, reasons = judge([PASSED, UNPROVEN, FAILED, later], most_skipped=0.1)
    assert (verdict, verdict.exit_code) == (Verdict.UNSAFE, 1)
    assert reasons == [f"search: {FAILED.said}"]


@pytest.mark.parametrize(
    ("stages", "reason"),
    [
        ([PASSED, UNPROVEN], "acceptance: no spec step after a plain stretch"),
        ([PASSED, Stage(name="soak", status=Status.LEFT_OUT, said="interrupted")], "soak: interrupted"),
        ([stage(changed(crossing=0))], "no program switched speculation off or on"),
        ([], "no program switched speculation off or on"),
        (
            [stage(changed(looked_in_part={"I11-draft": 90}))],
            "checks left something out in 22.5% of what they looked at, more than the 10.0% allowed",
        ),
        ([stage(changed(answered={}))], "I11-draft never had a right answer to compare with"),
        ([stage(changed(imported=()))], "sglang/srt/mine.py is changed, and nothing that ran has imported it"),
    ],
)
def test_what_is_missing(stages: list[Stage], reason: str) -> None:
    verdict, reasons = judge(stages, most_skipped=0.1, changed=["sglang/srt/mine.py"] if stages else [])
    assert (verdict, verdict.exit_code) == (Verdict.UNPROVEN, 3)
    assert reasons == [reason]


def test_coverage_adds_up() -> None:
    twice = total([PASSED, PASSED, BY_CHOICE])
    assert (twice.programs, twice.steps, twice.crossing) == (18, 600, 8)
    assert twice.labels == {"switched off": 8, "switched on": 6}
    assert twice.skipped_share == COVERAGE.skipped_share == 10 / 400
