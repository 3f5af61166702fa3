"""The report for a browser: one file, readable on a phone, printable, light and dark."""

from pathlib import Path
from typing import TYPE_CHECKING

from harness.checks import NAMES
from harness.report.reproducer import TIMELINE
from harness.report.script import templates
from harness.report.validation import plots
from harness.report.validation.report import Report
from harness.search.labels import ALPHABET, MEANINGS
from harness.validation.stage import Stage

if TYPE_CHECKING:
    from markupsafe import Markup

TEMPLATE = "validation.html.jinja"


def text(report: Report, folder: Path) -> str:
    """The page; timelines are taken from the reproducers in the report's folder."""
    from markupsafe import Markup

    curves = [stage for stage in report.stages if stage.curves]
    return (
        templates(escaped=True)
        .get_template(TEMPLATE)
        .render(
            report=report,
            failures=[(stage, _timeline(stage, folder)) for stage in report.stages if stage.failure],
            pictures=[Markup(_inline(picture)) for stage in curves for picture in plots.pictures(stage.curves)],
            checks=NAMES,
            alphabet=[(label, report.coverage.labels.get(label, 0), MEANINGS[label]) for label in ALPHABET],
        )
    )


def _timeline(stage: Stage, folder: Path) -> "Markup | None":
    from markupsafe import Markup

    assert stage.failure is not None
    if stage.failure.folder is None or not (folder / stage.failure.folder / TIMELINE).is_file():
        return None
    return Markup(_inline((folder / stage.failure.folder / TIMELINE).read_text()))


def _inline(picture: str) -> str:
    """An SVG without its prologue, which HTML can't have inside."""
    return picture[picture.index("<svg") :]
