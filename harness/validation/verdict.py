"""From stages to a verdict: never safe by omission."""

from collections.abc import Sequence
from enum import StrEnum
from functools import reduce
from operator import add

from harness.validation.stage import Coverage, Stage, Status


class Verdict(StrEnum):
    """Whether a patch may be deployed."""

    SAFE = "safe"
    UNSAFE = "unsafe"
    UNPROVEN = "unproven"

    @property
    def exit_code(self) -> int:
        """Of the command; 2 is wrong usage."""
        return {"safe": 0, "unsafe": 1, "unproven": 3}[self.value]


BY_PROFILE = "not part of this profile"
"""What a stage says that a person chose to leave out: the only thing left out that a safe patch may have."""
EARLIER = "an earlier stage didn't pass"


def total(stages: Sequence[Stage]) -> Coverage:
    """What all stages reached together."""
    return reduce(add, (stage.coverage for stage in stages), Coverage())


def judge(stages: Sequence[Stage], most_skipped: float, changed: Sequence[str] = ()) -> tuple[Verdict, list[str]]:
    """The verdict, and the reasons why it isn't `safe`; `changed` are the files of SGLang that a diff changes."""
    failed = [f"{stage.name}: {stage.said}" for stage in stages if stage.status is Status.FAILED]
    if failed:
        return Verdict.UNSAFE, failed
    missing = [*_not_run(stages), *_not_reached(total(stages), most_skipped, changed)]
    return (Verdict.UNPROVEN, missing) if missing else (Verdict.SAFE, [])


def _not_run(stages: Sequence[Stage]) -> list[str]:
    unproven = [stage for stage in stages if stage.status is Status.UNPROVEN]
    left_out = [s for s in stages if s.status is Status.LEFT_OUT and s.said not in (BY_PROFILE, EARLIER)]
    return [f"{stage.name}: {stage.said}" for stage in (*unproven, *left_out)]


def _not_reached(seen: Coverage, most_skipped: float, changed: Sequence[str]) -> list[str]:
    reasons = []
    if not seen.crossing:
        reasons.append("no program switched speculation off or on")
    if seen.skipped_share > most_skipped:
        reasons.append(
            f"checks left something out in {seen.skipped_share:.1%} of what they looked at, "
            f"more than the {most_skipped:.1%} allowed"
        )
    reasons += [f"{check} never had a right answer to compare with" for check in seen.unanswered]
    reasons += [
        f"{file} is changed, and nothing that ran has imported it" for file in sorted({*changed} - {*seen.imported})
    ]
    return reasons
