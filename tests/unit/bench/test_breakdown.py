"""Where a profile says that time went, from traces that are small enough to reckon by hand."""

from typing import Any

import pytest

from harness.bench.breakdown import ELSEWHERE, WINDOW, Breakdown, breakdown

NAMES = ("schedule", "run", "draft")


def span(name: str, ts: float, dur: float, tid: int = 1) -> dict[str, Any]:
    return {"ph": "X", "cat": "user_annotation", "name": name, "ts": ts, "dur": dur, "tid": tid}


def launch(ts: float, correlation: int, name: str = "cudaLaunchKernel", dur: float = 1) -> dict[str, Any]:
    event = {"ph": "X", "cat": "cuda_runtime", "name": name, "ts": ts, "dur": dur, "tid": 1}
    return event | {"args": {"correlation": correlation}}


def kernel(ts: float, dur: float, correlation: int, name: str = "gemm", cat: str = "kernel") -> dict[str, Any]:
    event = {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "tid": 7}
    return event | {"args": {"correlation": correlation}}


TRACE = [
    {"ph": "M", "name": "process_name"},
    span(WINDOW, 1000, 4000),
    span("schedule", 1000, 500),
    span("run", 2000, 2000),
    span("draft", 3000, 500),
    span("run", 100, 500),  # before the window
    span("run", 1500, 400, tid=2),  # of another thread
    launch(150, 1),
    kernel(1200, 100, 1),
    launch(2100, 2, name="cudaGraphLaunch"),
    kernel(2200, 1000, 2),
    kernel(2700, 1000, 2, name="attention"),  # beside the other
    launch(3100, 3),
    kernel(4500, 500, 3),
    launch(3600, 4, name="cudaEventSynchronize", dur=300),
    launch(4200, 5, name="cudaMemcpyAsync"),
    kernel(5200, 100, 5, name="Memcpy DtoH (Device -> Pinned)", cat="gpu_memcpy"),  # ends after the window
    launch(4300, 6, name="cudaMemcpyAsync", dur=200),
    kernel(4400, 100, 6, name="Memcpy DtoH (Device -> Pageable)", cat="gpu_memcpy"),
]


@pytest.fixture(scope="module")
def found() -> Breakdown:
    return breakdown(TRACE, NAMES, steps=2)


def test_host_time_is_the_innermost_phases(found: Breakdown) -> None:
    host = {name: phase.host_ms for name, phase in found.phases.items()}
    assert host == {"schedule": 0.25, "run": 0.75, "draft": 0.25, ELSEWHERE: 0.75}
    assert sum(host.values()) == found.step_ms == 2.0


def test_kernels_belong_to_who_launched_them(found: Breakdown) -> None:
    gpu = {name: (phase.gpu_ms, phase.kernels) for name, phase in found.phases.items()}
    assert gpu == {"schedule": (0, 0), "run": (1.0, 1.0), "draft": (0.25, 0.5), ELSEWHERE: (0.1, 1.0)}


def test_waiting_is_in_its_phase(found: Breakdown) -> None:
    waiting = {name: phase.waiting_ms for name, phase in found.phases.items() if phase.waiting_ms}
    assert waiting == {"run": 0.15, ELSEWHERE: 0.1}


def test_busy_counts_what_overlaps_once(found: Breakdown) -> None:
    assert found.busy_ms == pytest.approx((1500 + 600 + 100) / 1e3 / 2)


def test_kernels_with_the_most_time_come_first(found: Breakdown) -> None:
    assert [(kernel.name, kernel.count, kernel.gpu_ms) for kernel in found.kernels] == [
        ("gemm", 1.0, 0.75),
        ("attention", 0.5, 0.5),
        ("Memcpy DtoH (Device -> Pinned)", 0.5, 0.05),
        ("Memcpy DtoH (Device -> Pageable)", 0.5, 0.05),
    ]


def test_phases_that_follow_at_once() -> None:
    trace = [span(WINDOW, 0, 100), span("run", 0, 50), span("draft", 10, 40), span("schedule", 50, 50)]
    found = breakdown(trace, NAMES, steps=1)
    assert {name: phase.host_ms for name, phase in found.phases.items()} == {
        "schedule": 0.05,
        "run": 0.01,
        "draft": 0.04,
    }


def test_without_a_window() -> None:
    with pytest.raises(ValueError, match="no span 'profiled steps'"):
        breakdown([span("run", 0, 1)], NAMES, steps=1)
