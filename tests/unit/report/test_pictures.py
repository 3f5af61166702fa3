"""The timeline marks the failure; the Chrome trace keeps the format's rules."""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from harness.report import chrome_trace
from harness.report.rows import StepKind, kind_of
from tests.unit.report.findings import DEATH, RAN, STEPS

Event = dict[str, Any]


def events(text: str) -> list[Event]:
    found: list[Event] = json.loads(text)["traceEvents"]
    return found


def test_kinds_of_steps() -> None:
    assert [kind_of(step) for step in STEPS] == [
        StepKind.PREFILL,
        StepKind.SPEC,
        StepKind.PREFILL,
        StepKind.BROKEN,
    ]


@pytest.mark.xdist_group("pictures")
def test_the_timeline_of_a_run_without_rows(tmp_path: Path) -> None:
    """That of a run with rows is looked at in test_reproducer.py: drawing takes a while."""
    from harness.report import timeline

    timeline.write(DEATH.ran, tmp_path / "timeline.svg")
    words = [element.text for element in ElementTree.parse(tmp_path / "timeline.svg").iter() if element.text]
    assert "No rows to draw: the process died, and its trace with it." in words
    assert "patch attempt-1: the process dies at step 3" in words


def test_chrome_trace() -> None:
    found = events(chrome_trace.to_json(RAN))
    assert all({"name", "ph", "ts", "pid", "tid"} <= event.keys() for event in found)
    assert {event["ph"] for event in found} == {"M", "X", "C", "i"}
    named = {(event["pid"], event["tid"]) for event in found if event["name"] == "thread_name"}
    assert {(event["pid"], event["tid"]) for event in found} == named
    steps = [event for event in found if (event["ph"], event["pid"]) == ("X", chrome_trace.SCHEDULER)]
    assert [(step["name"], step["ts"], step["dur"]) for step in steps] == [
        ("prefill 1", 0, 1000),
        ("spec 1", 1000, 1000),
        ("prefill 2", 2000, 1000),
        ("broken decode 3", 3000, 1000),
    ]
    instants = [(event["name"], event["ts"]) for event in found if event["ph"] == "i"]
    assert instants == [("aborted: abort", 3000), ("I1-shapes", 3000)]
    assert [event["args"]["tokens"] for event in found if event["name"] == "KV free"] == [90, 85, 79]


def test_spans_are_balanced() -> None:
    """A span lies within the one that it begins in."""
    spans: dict[tuple[int, int], list[Event]] = defaultdict(list)
    for event in events(chrome_trace.to_json(RAN)):
        if event["ph"] == "X":
            spans[event["pid"], event["tid"]].append(event)
    assert len(spans) == 1 + 3
    for track in spans.values():
        ends: list[int] = []
        for span in track:
            while ends and ends[-1] <= span["ts"]:
                ends.pop()
            assert not ends or span["ts"] + span["dur"] <= ends[-1]
            ends.append(span["ts"] + span["dur"])


def test_a_chrome_trace_without_rows() -> None:
    assert [event["name"] for event in events(chrome_trace.to_json(DEATH.ran)) if event["ph"] != "M"] == [
        "process died"
    ]
