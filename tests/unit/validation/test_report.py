"""The report's four files say the same, and each is valid for who reads it."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from harness.errors import UsageError
from harness.report.validation import junit, markdown, pages
from harness.report.validation.report import Report
from tests.unit.validation.reports import BY_CHOICE, FAILED, MEASURED, PASSED, UNPROVEN, plan, report

pytestmark = pytest.mark.xdist_group("pictures")  # importing matplotlib takes a second of each worker

SAFE = report(PASSED, BY_CHOICE)
UNSAFE = report(PASSED, FAILED)
OPEN = report(PASSED, UNPROVEN)


class Page(HTMLParser):
    """Text and addresses of a page; raises where an element isn't closed."""

    VOID = ("meta", "br", "img", "path", "use")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href", "xlink:href")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href", "xlink:href")]

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_headlines() -> None:
    place = "on the emulated device (CPU) (profile quick"
    assert SAFE.headline == f"mine.diff is safe {place}, without soak); what only a GPU shows isn't covered"
    assert UNSAFE.headline == f"mine.diff is unsafe {place})"
    assert OPEN.headline == f"mine.diff is unproven {place})"
    narrow = SAFE.model_copy(update={"workers": ("v1",), "loosened": ("--most-skipped 1",)})
    assert f"{place}, worker v1 alone, without soak, --most-skipped 1)" in narrow.headline


@pytest.mark.parametrize(
    "made", [SAFE, UNSAFE, OPEN, report(PASSED, MEASURED)], ids=["safe", "unsafe", "open", "curves"]
)
def test_all_four_are_valid(made: Report, tmp_path: Path) -> None:
    assert pages.write(made, tmp_path) == tmp_path / "report.html"
    assert Report.model_validate_json((tmp_path / "report.json").read_text()) == made
    suite = ElementTree.fromstring((tmp_path / "junit.xml").read_text().partition("\n")[2])
    assert len(suite) == int(suite.get("tests", "")) == len(made.stages) + 1
    page = Page((tmp_path / "report.html").read_text())
    text = " ".join(page.words)
    assert made.headline in text
    assert all(stage.said in text for stage in made.stages)
    assert all(address.startswith(("#", "findings/")) for address in page.addresses), "it isn't self-contained"
    assert "<script" not in (tmp_path / "report.html").read_text()
    assert (tmp_path / "summary.md").read_text().splitlines()[0].endswith(made.headline)


def test_curves_are_drawn_alike_each_time(tmp_path: Path) -> None:
    made = report(PASSED, MEASURED)
    first = pages.write(made, tmp_path).read_text()
    assert first.count("<svg") == 2
    assert {"Throughput", "Time of a decode step"} <= set(Page(first).words)
    assert pages.write(made, tmp_path).read_text() == first


def test_a_timeline_comes_from_the_reproducer(tmp_path: Path) -> None:
    folder = tmp_path / "findings" / "mine-I9-tokens-step-2"
    folder.mkdir(parents=True)
    (folder / "timeline.svg").write_text('<?xml version="1.0"?>\n<!DOCTYPE svg>\n<svg><text>a line</text></svg>')
    text = pages.write(UNSAFE, tmp_path).read_text()
    assert "<figure><svg><text>a line</text></svg></figure>" in text
    assert '<a href="findings/mine-I9-tokens-step-2/report.md">' in text


def test_junit_counts() -> None:
    counts = {}
    for name, made in (("safe", SAFE), ("unsafe", UNSAFE), ("open", OPEN)):
        suite = ElementTree.fromstring(junit.text(made).partition("\n")[2])
        counts[name] = [suite.get(key) for key in ("tests", "failures", "skipped")]
    assert counts == {"safe": ["3", "0", "1"], "unsafe": ["3", "2", "0"], "open": ["3", "1", "1"]}


def test_a_comment_is_short_and_its_table_whole() -> None:
    said = markdown.text(UNSAFE)
    assert "step 2: &lt;3> \\| 4" in said
    rows = [line for line in said.splitlines() if line.startswith("| ")]
    assert all(len(re.findall(r"(?<!\\)\|", row)) == 5 for row in rows)
    assert "`findings/mine-I9-tokens-step-2` in the report (2 operations; 3 of 3 cold runs the same)" in said
    assert len(said) < 3000


def test_it_says_what_it_needs_to_be_repeated(tmp_path: Path) -> None:
    pages.write(SAFE, tmp_path)
    data = json.loads((tmp_path / "report.json").read_text())
    assert data["command"] == "toggle-harness validate mine.diff"
    assert data["patch_files"][0]["sha256"]
    assert (data["version"], data["verdict"]) == (1, "safe")


def test_limits_that_were_moved_are_said(tmp_path: Path) -> None:
    made = Report.of(plan(tmp_path, most_skipped=0.5, most_step_ratio=1.2), [PASSED], SAFE.started, 9.0, "")
    assert made.loosened == ("--most-skipped 0.5",)


def test_an_earlier_report_isnt_taken_for_this_one(tmp_path: Path) -> None:
    pages.write(SAFE, tmp_path)
    (tmp_path / "findings").mkdir()
    pages.forget(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["findings"]
    pages.forget(tmp_path)


def test_a_folder_that_cant_be_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--output .*nowhere: No such file or directory"):
        pages.write(SAFE, tmp_path / "nowhere")
