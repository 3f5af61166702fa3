"""The report for a CI system: a test suite with a case for each stage."""

from xml.etree import ElementTree

from harness.report.validation.report import Report
from harness.validation.stage import Stage, Status
from harness.validation.verdict import Verdict

SUITE = "toggle-harness validate"


def text(report: Report) -> str:
    """JUnit's XML: a failed stage is a failure, one that is unproven or left out is skipped; the verdict comes last."""
    statuses = [stage.status for stage in report.stages]
    proven = report.verdict is not Verdict.UNPROVEN
    suite = ElementTree.Element(
        "testsuite",
        name=SUITE,
        tests=str(len(statuses) + 1),
        failures=str(statuses.count(Status.FAILED) + (report.verdict is not Verdict.SAFE)),
        errors="0",
        skipped=str(statuses.count(Status.UNPROVEN) + statuses.count(Status.LEFT_OUT)),
        time=f"{report.seconds:.3f}",
        timestamp=report.started.isoformat(timespec="seconds"),
    )
    for stage in report.stages:
        _case(suite, report.patch, stage)
    verdict = ElementTree.SubElement(suite, "testcase", classname=report.patch, name="verdict", time="0")
    if report.verdict is not Verdict.SAFE:
        failure = ElementTree.SubElement(verdict, "failure", message=_valid(report.headline), type=report.verdict)
        failure.text = _valid("\n".join(report.reasons))
    _say(verdict, report.headline if proven else "\n".join([report.headline, *report.reasons]))
    ElementTree.indent(suite)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(suite, encoding="unicode") + "\n"


def _case(suite: ElementTree.Element, patch: str, stage: Stage) -> None:
    case = ElementTree.SubElement(suite, "testcase", classname=patch, name=stage.name, time=f"{stage.seconds:.3f}")
    if stage.status is Status.FAILED:
        failure = ElementTree.SubElement(case, "failure", message=_valid(stage.said), type=stage.status)
        failure.text = _valid(stage.failure.message if stage.failure else "")
    elif stage.status is not Status.PASSED:
        ElementTree.SubElement(case, "skipped", message=_valid(stage.said))
    _say(case, "\n".join([stage.said, *(f"{name}: {value}" for name, value in stage.facts)]))


def _say(case: ElementTree.Element, said: str) -> None:
    ElementTree.SubElement(case, "system-out").text = _valid(said)


def _valid(said: str) -> str:
    """Without the control characters that XML can't hold, as a process may write them."""
    return "".join(c for c in said if c in "\t\n" or (ord(c) >= 0x20 and not 0xD800 <= ord(c) <= 0xDFFF))
