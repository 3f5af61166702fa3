"""The matrix of faults and checks, as a section of a Markdown page for each device."""

import re
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness.checks import NAMES
from harness.detection import Detected
from harness.engine.device import Device
from harness.outcome import Outcome
from harness.validation.profile import Profile
from harness.validation.verdict import Verdict

if TYPE_CHECKING:  # both import Hypothesis, which a command line that is refused needs not
    from harness.search.hunt import Hunted
    from harness.validation.trial import Tried

HEADS = {Device.CPU: "## On the emulated device", Device.CUDA: "## On a GPU"}
SEARCHED = {Device.CPU: "## Found by search, on the emulated device", Device.CUDA: "## Found by search, on a GPU"}
VALIDATED = {
    (device, profile): f"## Validated with profile {profile}, {where}"
    for profile in Profile
    for device, where in ((Device.CPU, "on the emulated device"), (Device.CUDA, "on a GPU"))
}
INTRODUCTION = """# Which check sees which fault

Made by `toggle-harness detect --write docs/detection.md`. Each row is a case (`cases/NAME`, its README says what the
mistake is), run with all checks (first to fire, and at which step), with each check alone (the step at which it fires;
a dash where it sees nothing; `!` where the scheduler raises before it does) and with none (whether the scheduler
notices by itself).

`toggle-harness detect --search --write docs/detection.md` makes the tables of searches: from nothing but the patch to a
shrunk reproducer that three cold runs confirm. Seconds count from the start of the search, SGLang imported.
`toggle-harness detect --validate PROFILE --write docs/detection.md` makes those of what `validate` says of each patch.
"""


def section(device: Device, detected: Sequence[Detected]) -> str:
    """One device's section."""
    short = [name.partition("-")[0] for name in NAMES]
    head = ["fault", "first", "step", *short, "without checks"]
    rows = [head, ["---"] * len(head), *(_row(one) for one in detected)]
    firsts = {one.first.check for one in detected}
    unseen = [one.case for one in detected if one.first.kind == "passes"]
    never = [name for name in NAMES if name not in firsts]
    return "\n".join(
        [
            HEADS[device],
            "",
            f"{len(detected) - len(unseen)} of {len(detected)} caught"
            + (f"; not {', '.join(unseen)}" if unseen else "")
            + f". First for at least one fault: {len(NAMES) - len(never)} of {len(NAMES)} checks"
            + (f"; not {', '.join(never)}." if never else "."),
            "",
            *("| " + " | ".join(row) + " |" for row in rows),
            "",
        ]
    )


def searched(device: Device, hunted: "Sequence[Hunted]") -> str:
    """The section of searches on one device."""
    found = [one for one in hunted if one.outcome is not None]
    missed = [one.patch for one in hunted if one.outcome is None]
    seconds = [one.seconds for one in found] or [0.0]
    head = ["patch", "found as", "step", "operations", "requests", "programs run", "cold runs alike", "seconds"]
    rows = [head, ["---"] * len(head), *(_hunted(one) for one in hunted)]
    return "\n".join(
        [
            SEARCHED[device],
            "",
            f"{len(found)} of {len(hunted)} found"
            + (f"; not {', '.join(missed)}" if missed else "")
            + f". Median {statistics.median(seconds):.0f} s, worst {max(seconds):.0f} s.",
            "",
            *("| " + " | ".join(row) + " |" for row in rows),
            "",
        ]
    )


def validated(device: Device, profile: Profile, tried: "Sequence[Tried]") -> str:
    """The section of validations with one profile on one device."""
    wrong = [one for one in tried if one.expected is not None]
    unsafe = [one for one in wrong if one.verdict is Verdict.UNSAFE]
    alike = [one for one in unsafe if one.right]
    head = ["patch", "verdict", "stage", "fails as", "its case says", "seconds"]
    rows = [head, ["---"] * len(head), *(_tried(one) for one in tried)]
    return "\n".join(
        [
            VALIDATED[device, profile],
            "",
            f"{len(unsafe)} of {len(wrong)} wrong patches unsafe, {len(alike)} of them by the check or the error that "
            "their case names first.",
            "",
            *("| " + " | ".join(row) + " |" for row in rows),
            "",
        ]
    )


def write(page: Path, section: str) -> None:
    """Put a section in the place of the one with its heading, or make the page."""
    text = page.read_text() if page.exists() else INTRODUCTION
    sections = {head: "" for head in (*HEADS.values(), *SEARCHED.values(), *VALIDATED.values())}
    for head in sections:
        found = re.search(rf"^{re.escape(head)}$.*?(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
        sections[head] = found.group().rstrip() + "\n" if found else ""
    sections[section.partition("\n")[0]] = section
    page.write_text("\n".join([INTRODUCTION, *(part for part in sections.values() if part)]))


def _hunted(one: "Hunted") -> list[str]:
    if one.outcome is None or one.program is None:
        return [one.patch, "not found", "-", "-", "-", str(one.programs), "-", f"{one.seconds:.0f}"]
    said = one.outcome.check or (one.outcome.text or one.outcome.kind).partition(":")[0]
    return [
        one.patch,
        said.replace("|", "/"),
        str(one.outcome.step),
        str(len(one.program.operations)),
        str(sum(submit.count for submit in one.program.submits)),
        str(one.programs),
        f"{one.same} of {one.cold_runs}",
        f"{one.seconds:.0f}",
    ]


def _tried(one: "Tried") -> list[str]:
    seen, expected = (
        "-" if outcome is None else outcome.check or (outcome.text or outcome.kind).partition(":")[0].replace("|", "/")
        for outcome in (one.outcome, one.expected)
    )
    return [one.patch, one.verdict.value, one.stage or "-", seen, expected, f"{one.seconds:.0f}"]


def _row(one: Detected) -> list[str]:
    alone = [_alone(one.alone[name]) for name in NAMES]
    first = one.first.check or one.first.kind
    return [
        one.case,
        first,
        str(one.first.step if one.first.step is not None else "-"),
        *alone,
        _unchecked(one.unchecked),
    ]


def _alone(outcome: Outcome) -> str:
    return {"passes": "-", "raises": "!"}.get(outcome.kind, str(outcome.step))


def _unchecked(outcome: Outcome) -> str:
    if outcome.kind == "passes":
        return "silent"
    return f"step {outcome.step}: {(outcome.text or '')[:60].replace('|', '/')}"
