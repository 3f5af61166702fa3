"""The text of an issue has SGLang's headings and the facts."""

from dataclasses import replace

import pytest

from harness.report import facts, issue, script
from harness.search.finding import Finding
from tests.unit.report.findings import DEATH, EVERY, FAILS, FINDING, FLAKY, HANG, PASSES, RAISE, RAN


def text(finding: Finding) -> str:
    return issue.text(finding, finding.program, "# the script", {"patch.py": "# the patch"})


@pytest.mark.parametrize("finding", EVERY, ids=lambda finding: finding.ran.outcome.kind)
def test_headings(finding: Finding) -> None:
    headings = [line for line in text(finding).splitlines() if line.startswith("#") and not line.startswith("# ")]
    assert headings == ["### Describe the bug", "### Reproduction", "### Environment"]


def test_a_check_that_fails() -> None:
    said = text(FINDING)
    assert "With patch `attempt-1`, check I1-shapes fails at step 3 (decode batch sizes 1, 3)." in said
    assert "`I1-shapes` demands: One token a request in DECODE" in said
    assert (
        "````text\nstep 3, I1-shapes: length of input_ids, in DECODE of 3 requests, is 2, must be 3\n```\n````" in said
    )
    assert ">     3        DECODE       -     3      -      -          -        -       -       -\n" in said
    assert "3 of 3 cold runs ended in the same way." in said
    assert "A search with seed 7 found it as a program of 6 (`found.json`) and shrank it." in said
    for block in (script.python_of(FINDING.program), "# the script", "# the patch", "sglang: 0.5.12.post1"):
        assert block in said


def test_a_raise() -> None:
    assert "the scheduler raises RuntimeError at step 3 (decode" in text(RAISE)
    assert "It was not run again." in text(RAISE)


def test_a_death() -> None:
    said = text(DEATH)
    assert "signal 11" in said
    assert "Fatal Python error: Segmentation fault" in said
    assert "There are no rows of its steps: the process took them with it." in said
    assert "It got as far as:\n\n" + issue.fenced(script.python_of(DEATH.ran.until), "python") in said
    assert "| CUDA_LAUNCH_BLOCKING=1 | the scheduler raises RuntimeError at step 3: The size" in said
    assert "| without CUDA graphs | all checks pass |" in said


def test_a_hang() -> None:
    assert "step 3 doesn't return." in text(HANG)
    assert "The stacks of its threads:\n\n```text\nThread 1:\n  File patch.py" in text(HANG)


def test_how_often_it_happened_again() -> None:
    never = replace(FLAKY, confirmations=[PASSES, PASSES])
    assert facts.seen_again(FLAKY) == ("Flaky: 2 of 3 cold runs ended in the same way; otherwise all checks pass (1).")
    assert facts.seen_again(never).startswith("Not seen again: none of 2 cold runs")


def test_what_is_too_long_loses_its_middle() -> None:
    long = "\n".join(map(str, range(9000)))
    clipped = issue.clipped(long)
    assert clipped.startswith("0\n1\n")
    assert clipped.endswith("\n8999")
    assert f"\n... {len(long) - issue.MOST_CHARACTERS} characters left out ...\n" in clipped
    every = replace(FINDING, ran=replace(RAN, outcome=FAILS, message=long, output=long), environment=long)
    assert len(text(every)) < 65_536
