"""The report's folder: `report.html`, `report.json`, `junit.xml` and `summary.md`."""

from pathlib import Path

from harness.errors import UsageError
from harness.report.validation import html, junit, markdown
from harness.report.validation.report import Report

PAGE, DATA, JUNIT, SUMMARY = "report.html", "report.json", "junit.xml", "summary.md"


def forget(folder: Path) -> None:
    """Remove an earlier validation's, lest it is taken for this one's; raises UsageError where that can't be done."""
    try:
        for name in (PAGE, DATA, JUNIT, SUMMARY):
            (folder / name).unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"--output {folder}: {error.strerror}") from None


def write(report: Report, folder: Path) -> Path:
    """Write all four, beside the reproducers, and return the page; raises UsageError where that can't be done."""
    contents = {
        DATA: report.model_dump_json(indent=2) + "\n",
        JUNIT: junit.text(report),
        SUMMARY: markdown.text(report),
        PAGE: html.text(report, folder),
    }
    try:
        for name, content in contents.items():
            (folder / name).write_text(content, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--output {folder}: {error.strerror}") from None
    return folder / PAGE


__all__ = ["Report", "forget", "write"]
