"""Traces as a table and as JSON."""

import io
import json

from rich.console import Console

from harness.report.table import TraceTable
from harness.trace import RequestTrace, Trace, TraceStep

SPEC = TraceStep(
    3, "TARGET_VERIFY", (0, 2), tokens_in=32, padded_size=4, tokens_out=(3, 1), accepted=(2, 0), kv_free=4000, waiting=1
)
PLAIN = TraceStep(4, "TARGET_VERIFY", (0, 2), tokens_in=2, tokens_out=(1, 1), accepted=(0, 0), kv_free=3998)
IDLE = TraceStep(5, "IDLE", kv_free=4096)


def test_table() -> None:
    written = io.StringIO()
    table = TraceTable(Console(file=written, width=100))
    for step in (SPEC, PLAIN, IDLE):
        table.add(step)
    assert [line.split() for line in written.getvalue().splitlines()[1:]] == [
        ["3", "TARGET_VERIFY", "spec", "2", "4", "graph", "4", "2", "1", "4000"],
        ["4", "TARGET_VERIFY", "plain", "2", "-", "eager", "2", "0", "0", "3998"],
        ["5", "IDLE", "-", "-", "-", "-", "-", "-", "0", "4096"],
    ]


def test_spec_step_verifies_more_than_roots() -> None:
    assert (SPEC.spec, PLAIN.spec, IDLE.spec) == (True, False, False)
    assert (SPEC.plain, PLAIN.plain, IDLE.plain) == (False, True, False)


def test_switches_are_counted_across_prefills_and_idle_steps() -> None:
    prefill = TraceStep(0, "EXTEND", (0,), tokens_in=9, tokens_out=(1,))
    assert Trace(steps=[SPEC, prefill, PLAIN, PLAIN, IDLE, SPEC, SPEC, PLAIN]).switches == (2, 1)


def test_json() -> None:
    trace = Trace(steps=[SPEC, IDLE], requests=[RequestTrace(0, (1, 2), output=[3], finish_reason="length")])
    content = json.loads(trace.to_json())
    assert content["version"] == 1
    assert content["steps"][0] | {"accepted": [2, 0], "batch_size": 2, "graph": True} == content["steps"][0]
    assert "processed" not in content["steps"][0]
    assert content["requests"][0]["output"] == [3]
    assert (trace.decode_sizes, trace.tokens_streamed) == ([2], 1)
