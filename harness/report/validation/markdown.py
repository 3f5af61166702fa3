"""The report for a pull request's comment or a job's page."""

from harness.report.script import templates
from harness.report.validation.report import Report

TEMPLATE = "summary.md.jinja"
MOST_CHARACTERS = 2000
"""Of one message."""


def text(report: Report) -> str:
    """Short: the verdict, a row for each stage, and the shortest reproducer."""
    return templates().get_template(TEMPLATE).render(report=report, failure=_failure(report), cell=_cell)


def _failure(report: Report) -> str | None:
    messages = [stage.failure.message for stage in report.stages if stage.failure and stage.failure.message]
    return messages[0][:MOST_CHARACTERS].replace("```", "'''") if messages else None


def _cell(said: str) -> str:
    return " ".join(said.split()).replace("|", "\\|").replace("<", "&lt;")
