"""Where the time of some steps went, from a trace of torch's profiler: by phase, on the host and on the GPU.

A kernel belongs to the innermost phase in which it was launched, a captured graph's kernels to the one that launched
the graph. The trace is Chrome's format as Kineto writes it: complete events with `ts` and `dur` in microseconds,
launches and what they launched joined by `args.correlation`.
"""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import BaseModel

WINDOW = "profiled steps"
"""Name of the span that the steps are in."""
ELSEWHERE = "elsewhere"
"""What is in no phase."""
SPANS, LAUNCHES = {"user_annotation"}, {"cuda_runtime", "cuda_driver"}
ON_GPU = {"kernel", "gpu_memcpy", "gpu_memset"}
WAITS = ("cudaEventSynchronize", "cudaStreamSynchronize", "cudaDeviceSynchronize")
TO_PAGEABLE = "Memcpy DtoH (Device -> Pageable)"
"""A copy whose launch waits for it as well (CUDA Runtime API, API synchronization behavior)."""
TOP = 8
"""Kernels that are listed."""

Event = dict[str, Any]


class Phase(BaseModel):
    """Per step; milliseconds."""

    host_ms: float = 0.0
    """Without the phases within."""
    waiting_ms: float = 0.0
    """Of that, for the GPU."""
    gpu_ms: float = 0.0
    """Sum of kernels, copies and fills."""
    kernels: float = 0.0


class Kernel(BaseModel):
    """Per step; milliseconds."""

    name: str
    count: float
    gpu_ms: float


class Breakdown(BaseModel):
    """Of one engine's steps."""

    step_ms: float
    """While profiled, which slows the host."""
    busy_ms: float
    """In which anything ran on the GPU."""
    phases: dict[str, Phase]
    kernels: list[Kernel]
    """Those with the most time."""


def breakdown(events: Iterable[Event], names: Sequence[str], steps: int) -> Breakdown:
    """Of the `steps` within the window, by the phases of these names; raises ValueError without a window."""
    complete = [event for event in events if event.get("ph") == "X"]
    window = next((event for event in complete if event["name"] == WINDOW and event.get("cat") in SPANS), None)
    if window is None:
        raise ValueError(f"the trace has no span {WINDOW!r}")
    inside = _Inside(window, complete, set(names))
    phases = {name: Phase() for name in (*names, ELSEWHERE)}
    for name, microseconds in inside.own_times():
        phases[name].host_ms += microseconds / 1e3 / steps
    ran = [event for event in complete if event.get("cat") in ON_GPU]
    awaited = {event["args"].get("correlation") for event in ran if event["name"] == TO_PAGEABLE}
    launched_in = {}
    for call in inside.within(event for event in complete if event.get("cat") in LAUNCHES):
        correlation = call["args"].get("correlation")
        name = launched_in[correlation] = inside.phase_at(call["ts"])
        if call["name"] in WAITS or correlation in awaited:
            phases[name].waiting_ms += call["dur"] / 1e3 / steps
    ran = [event for event in ran if event["args"].get("correlation") in launched_in]
    for event in ran:
        phase = phases[launched_in[event["args"]["correlation"]]]
        phase.gpu_ms += event["dur"] / 1e3 / steps
        phase.kernels += 1 / steps
    return Breakdown(
        step_ms=window["dur"] / 1e3 / steps,
        busy_ms=_covered(ran) / 1e3 / steps,
        phases={name: phase for name, phase in phases.items() if phase.host_ms or phase.kernels},
        kernels=_top(ran, steps),
    )


class _Inside:
    """The phases within a window, on its thread."""

    def __init__(self, window: Event, events: Sequence[Event], names: set[str]) -> None:
        self._window, self._end = window, window["ts"] + window["dur"]
        spans = [event for event in events if event.get("cat") in SPANS and event["name"] in names]
        self._changes: list[tuple[float, str]] = []
        """When another phase begins or goes on, and which."""
        open_: list[tuple[float, str]] = [(self._end, ELSEWHERE)]
        self._changes.append((window["ts"], ELSEWHERE))
        for span in sorted(self.within(spans), key=lambda span: (span["ts"], -span["dur"])):
            self._close(open_, span["ts"])
            open_.append((span["ts"] + span["dur"], span["name"]))
            self._changes.append((span["ts"], span["name"]))
        self._close(open_, self._end)
        self._starts = [start for start, _ in self._changes]

    def _close(self, open_: list[tuple[float, str]], until: float) -> None:
        while len(open_) > 1 and open_[-1][0] <= until:
            ended, _ = open_.pop()
            self._changes.append((ended, open_[-1][1]))

    def within(self, events: Iterable[Event]) -> list[Event]:
        """Those of the window's thread that begin in it."""
        return [
            event
            for event in events
            if event["tid"] == self._window["tid"] and self._window["ts"] <= event["ts"] < self._end
        ]

    def phase_at(self, time: float) -> str:
        """The innermost."""
        return self._changes[bisect_right(self._starts, time) - 1][1]

    def own_times(self) -> list[tuple[str, float]]:
        """Phase and microseconds, piece by piece."""
        ends = [*self._starts[1:], self._end]
        return [(name, end - start) for (start, name), end in zip(self._changes, ends, strict=True)]


def _covered(events: Sequence[Event]) -> float:
    """Microseconds in which at least one of them ran."""
    covered, until = 0.0, float("-inf")
    for start, end in sorted((event["ts"], event["ts"] + event["dur"]) for event in events):
        covered += max(0.0, end - max(start, until))
        until = max(until, end)
    return covered


def _top(events: Sequence[Event], steps: int) -> list[Kernel]:
    times, counts = defaultdict[str, float](float), Counter[str]()
    for event in events:
        times[event["name"]] += event["dur"]
        counts[event["name"]] += 1
    most = sorted(times, key=lambda name: -times[name])[:TOP]
    return [Kernel(name=name, count=counts[name] / steps, gpu_ms=times[name] / 1e3 / steps) for name in most]
