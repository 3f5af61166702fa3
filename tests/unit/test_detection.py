"""The page of faults and checks keeps each device's section."""

from pathlib import Path

from harness.checks import NAMES
from harness.detection import Detected
from harness.engine.device import Device
from harness.outcome import Outcome
from harness.program import Program, Submit
from harness.report.detection import searched, section, validated, write
from harness.search.hunt import Hunted
from harness.validation.profile import Profile
from harness.validation.trial import Tried
from harness.validation.verdict import Verdict

PASSES = Outcome(kind="passes")
FIRST = Outcome(kind="fails", check="I6-spec-info", step=4, text="rows")
CAUGHT = Detected(
    "fault-05",
    FIRST,
    dict.fromkeys(NAMES, PASSES) | {"I6-spec-info": FIRST, "I7-graphs": Outcome(kind="raises", step=6, text="E")},
    Outcome(kind="raises", step=6, text="RuntimeError: a | b"),
)
FOUND = Hunted("fault-05", FIRST, 41.2, 77, Program(operations=(Submit(count=3),)), 3, 3)
NOT_FOUND = Hunted("fault-98", None, 120.0, 900, None, 0, 0)
SAFE = Tried("warm", Verdict.SAFE, None, None, None, 890.0)
MISSED = Detected("fault-99", PASSES, dict.fromkeys(NAMES, PASSES), PASSES)


def test_section() -> None:
    lines = section(Device.CPU, [CAUGHT, MISSED]).splitlines()
    assert lines[2].startswith(
        "1 of 2 caught; not fault-99. First for at least one fault: 1 of 12 checks; not I1-shapes,"
    )
    row = (
        "| fault-05 | I6-spec-info | 4 | - | - | - | - | - | 4 | ! | - | - | - | - | - | step 6: RuntimeError: a / b |"
    )
    assert row in lines
    assert lines[-1] == "| fault-99 | passes | - |" + " - |" * 12 + " silent |"


def test_a_page_keeps_the_other_devices_section(tmp_path: Path) -> None:
    page = tmp_path / "detection.md"
    write(page, section(Device.CUDA, [CAUGHT]))
    write(page, section(Device.CPU, [MISSED]))
    write(page, searched(Device.CPU, [FOUND, NOT_FOUND]))
    for profile in (Profile.STANDARD, Profile.QUICK):
        write(page, validated(Device.CPU, profile, [SAFE]))
    write(page, section(Device.CPU, [CAUGHT, MISSED]))
    text = page.read_text()
    assert text.count("## On a GPU") == text.count("## On the emulated device") == 1
    assert text.index("## On the emulated device") < text.index("## On a GPU")
    assert "1 of 1 caught" in text
    assert "1 of 2 found; not fault-98. Median 41 s, worst 41 s." in text
    assert "| fault-05 | I6-spec-info | 4 | 1 | 3 | 77 | 3 of 3 | 41 |" in text
    assert "| fault-98 | not found | - | - | - | 900 | - | 120 |" in text
    assert "1 of 2 caught" in text
    assert text.count("| warm | safe | - | - | - | 890 |") == 2
    assert text.index("## Validated with profile quick,") < text.index("## Validated with profile standard,")
