"""The matrix of faults and checks, as a section of a Markdown page for each device."""

import re
from collections.abc import Sequence
from pathlib import Path

from harness.checks import NAMES
from harness.detection import Detected
from harness.engine.device import Device
from harness.outcome import Outcome

HEADS = {Device.CPU: "## On the emulated device", Device.CUDA: "## On a GPU"}
INTRODUCTION = """# Which check sees which fault

Made by `toggle-harness detect --write docs/detection.md`. Each row is a case (`cases/NAME`, its README says what the
mistake is), run with all checks (first to fire, and at which step), with each check alone (the step at which it fires;
a dash where it sees nothing; `!` where the scheduler raises before it does) and with none (whether the scheduler
notices by itself).
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


def write(page: Path, device: Device, detected: Sequence[Detected]) -> None:
    """Replace a device's section of the page, or make the page."""
    text = page.read_text() if page.exists() else INTRODUCTION
    sections = {head: "" for head in HEADS.values()}
    for head in sections:
        found = re.search(rf"^{re.escape(head)}$.*?(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
        sections[head] = found.group().rstrip() + "\n" if found else ""
    sections[HEADS[device]] = section(device, detected)
    page.write_text("\n".join([INTRODUCTION, *(part for part in sections.values() if part)]))


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
