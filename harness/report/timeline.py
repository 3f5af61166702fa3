"""A picture of a run: batch size, mode, padded size and free KV slots over steps, with the failure marked.

matplotlib's Figure without pyplot, so that nothing outside it changes, and always the same bytes for the same run.
"""

import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from harness.isolation.ran import Ran
from harness.report import facts
from harness.report.rows import StepKind, broken_off, kind_of
from harness.trace import TraceStep

# Okabe and Ito's colours: told apart by every kind of colour vision, and in grey by their lightness.
COLOURS = {
    StepKind.PREFILL: "#009E73",
    StepKind.SPEC: "#0072B2",
    StepKind.PLAIN: "#E69F00",
    StepKind.BROKEN: "#666666",
    StepKind.IDLE: "#DDDDDD",
}
LABEL_COLOURS = {StepKind.PREFILL: "white", StepKind.SPEC: "white", StepKind.BROKEN: "white"}
FAILURE = "#C1272D"
INK, PALE = "#222222", "#777777"
STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": PALE,
    "xtick.color": INK,
    "ytick.color": INK,
    "hatch.linewidth": 0.6,
    "svg.fonttype": "none",  # text stays text: small, searchable
    "svg.hashsalt": "sglang-toggle-harness",
    "savefig.dpi": 130,
}
NOTHING = float("nan")
# All in inches: a layout that matplotlib solves for would differ in the last digit from run to run.
NARROWEST, WIDEST, PER_STEP = 8.0, 16.0, 0.09
LEFT, RIGHT, BOTTOM = 1.0, 0.95, 0.8
TICK_LABELS = 0.62
EDGE, TITLE, LINE = 0.09, 0.28, 0.2
"""From an edge to text, and the heights of the title and of each line under it."""
MODES, BATCH, FREE, WAITING, GAP = 0.17, 2.0, 0.75, 0.45, 0.15
"""Heights of the panels, and between them."""
CHARACTER = 0.068
MOST_WIDE_STEPS = 120
"""Steps up to which each is wide enough to be outlined, and shaded where it failed."""


def write(ran: Ran, file: Path) -> None:
    """Draw a run into an SVG or PNG file, by its ending."""
    kind = file.suffix.removeprefix(".")
    undated: dict[str, Any] = {"Creator": None, "Date": None} if kind == "svg" else {"Software": None}
    with _style():
        draw(ran).savefig(file, format=kind, metadata=undated)


def draw(ran: Ran) -> Figure:
    """The picture; of a run without rows one that says so."""
    steps = ran.trace.steps
    width = min(WIDEST, max(NARROWEST, LEFT + RIGHT + PER_STEP * len(steps)))
    heading = _heading(ran)
    top = EDGE + TITLE + LINE * len(heading)
    if not steps:
        figure = Figure(figsize=(width, top))
        _write(figure, heading, width)
        return figure
    heights = [MODES, BATCH, FREE, *([WAITING] if any(step.waiting for step in steps) else [])]
    height = top + sum(heights) + GAP * (len(heights) - 1) + BOTTOM
    figure = Figure(figsize=(width, height))
    _write(figure, heading, width)
    panels = _panels(figure, top, heights)
    _draw_modes(panels[0], steps, width)
    _draw_batch(panels[1], ran)
    _draw_line(panels[2], ran, lambda step: step.kv_free, "KV slots\nfree")
    if len(panels) > 3:
        _draw_line(panels[3], ran, lambda step: step.waiting, "waiting\nrequests")
    panels[0].set_xlim(-0.5, len(steps) - 0.5)
    _mark_failure(panels, ran)
    panels[-1].set_xlabel("scheduler step")
    panels[-1].tick_params(labelbottom=True)
    panels[-1].xaxis.set_major_locator(MaxNLocator(nbins=12, integer=True))
    figure.legend(handles=list(_legend(ran)), loc="lower left", ncols=7, frameon=False, fontsize=8)
    return figure


@contextmanager
def _style() -> Iterator[None]:
    """matplotlib's own defaults and ours, whatever a matplotlibrc says; as it was again afterwards."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        yield


def _heading(ran: Ran) -> list[tuple[str, dict[str, Any]]]:
    """What happened, what the check or the error says, on which configuration, and why there is no more to see."""
    small: dict[str, Any] = {"fontsize": 8.5}
    lines: list[tuple[str, dict[str, Any]]] = [
        (facts.headline(ran), {"fontsize": 11, "weight": "bold", "color": INK}),
        *([(ran.outcome.text, {**small, "color": FAILURE})] if ran.outcome.text else []),
        (facts.conditions(ran.program.config), {**small, "color": PALE}),
    ]
    lost = {"dies": "the process died, and its trace with it", "hangs": "the process was ended, and its trace with it"}
    if not ran.trace.steps:
        lines.append((f"No rows to draw: {lost.get(ran.outcome.kind, 'none were handed over')}.", {"color": INK}))
    return lines


def _write(figure: Figure, lines: Sequence[tuple[str, dict[str, Any]]], width: float) -> None:
    top, most = EDGE, int((width - 2 * EDGE) / CHARACTER)
    for number, (text, look) in enumerate(lines):
        place = (EDGE / width, 1 - top / figure.get_figheight())
        figure.text(*place, textwrap.shorten(text, most, placeholder=" ..."), va="top", parse_math=False, **look)
        top += LINE if number else TITLE


def _panels(figure: Figure, top: float, heights: Sequence[float]) -> list[Axes]:
    """Panels one below the other, which share their steps."""
    panels: list[Axes] = []
    width, height = figure.get_size_inches()
    for tall in heights:
        top += tall
        place = (LEFT / width, 1 - top / height, 1 - (LEFT + RIGHT) / width, tall / height)
        panels.append(figure.add_axes(place, sharex=panels[0] if panels else None))
        panels[-1].tick_params(labelbottom=False)
        top += GAP
    return panels


def _edges(steps: Sequence[TraceStep]) -> list[float]:
    return [index - 0.5 for index in range(len(steps) + 1)]


def _draw_modes(axes: Axes, steps: Sequence[TraceStep], width: float) -> None:
    """A ribbon of what each step did, named where there is room for the name."""
    inches_per_step = (width - LEFT - RIGHT) / len(steps)
    for kind, group in groupby(steps, kind_of):
        run = list(group)
        first, count = run[0].index, len(run)
        axes.axvspan(first - 0.5, first + count - 0.5, facecolor=COLOURS[kind], linewidth=0)
        if count * inches_per_step > len(kind) * CHARACTER:
            colour = LABEL_COLOURS.get(kind, INK)
            axes.text(first + (count - 1) / 2, 0.46, kind, ha="center", va="center", fontsize=8, color=colour)
    axes.set_ylim(0, 1)
    axes.set_yticks([])
    axes.spines[:].set_visible(False)
    axes.tick_params(bottom=False)


def _draw_batch(axes: Axes, ran: Ran) -> None:
    """Bars in the mode's colour, padding hatched on top of them, and the threshold."""
    steps = ran.trace.steps
    edges = _edges(steps)
    sizes = [step.batch_size for step in steps]
    for kind, colour in COLOURS.items():
        heights = [size if kind_of(step) is kind else NOTHING for size, step in zip(sizes, steps, strict=True)]
        axes.stairs(heights, edges, fill=True, facecolor=colour, linewidth=0)
    axes.stairs(sizes, edges, color=INK, linewidth=1.0 if len(steps) <= MOST_WIDE_STEPS else 0.5)
    padded = [max(size, step.padded_size or 0) for size, step in zip(sizes, steps, strict=True)]
    axes.stairs(
        [top if top > size else NOTHING for top, size in zip(padded, sizes, strict=True)],
        edges,
        baseline=sizes,
        fill=True,
        facecolor="none",
        edgecolor=PALE,
        hatch="//////",
        linewidth=0,
    )
    largest = max(*padded, *_thresholds(ran).values(), 1)
    for name, value in _thresholds(ran).items():
        axes.axhline(value, color=INK, linestyle=(0, (4, 3)), linewidth=1.0)
        axes.annotate(
            name,
            (1, value),
            (4, 0),
            xycoords=axes.get_yaxis_transform(),
            textcoords="offset points",
            va="center",
            fontsize=8,
        )
    axes.set_ylim(0, largest * 1.22)  # room for the failure's name
    _label(axes, "requests\nin the batch", ticks=6)


def _thresholds(ran: Ran) -> dict[str, int]:
    toggle = ran.program.config.toggle
    if toggle is None:
        return {}
    lower = {f"on again at {toggle.threshold - toggle.hysteresis}": toggle.threshold - toggle.hysteresis}
    return {f"threshold {toggle.threshold}": toggle.threshold} | (lower if toggle.hysteresis else {})


def _draw_line(axes: Axes, ran: Ran, read: Callable[[TraceStep], int], label: str) -> None:
    """What was read after each of the steps that ended."""
    steps = ran.trace.steps
    values = [read(step) for step in steps if step is not broken_off(ran.trace)]
    if values:
        axes.stairs(values, _edges(steps)[: len(values) + 1], baseline=None, color=INK, linewidth=1.2)
        room = max(1, (max(values) - min(values)) * 0.12)
        axes.set_ylim(max(0, min(values) - room), max(values) + room)
    _label(axes, label, ticks=3)


def _label(axes: Axes, label: str, ticks: int) -> None:
    axes.set_ylabel(label, fontsize=8.5)
    axes.yaxis.set_label_coords(-TICK_LABELS / _inches(axes), 0.5)  # one below the other
    axes.yaxis.set_major_locator(MaxNLocator(nbins=ticks, integer=True))
    axes.ticklabel_format(axis="y", useOffset=False, style="plain")


def _inches(axes: Axes) -> float:
    figure = axes.get_figure(root=True)
    assert figure is not None
    return float(axes.get_position().width * figure.get_size_inches()[0])


def _mark_failure(panels: Sequence[Axes], ran: Ran) -> None:
    step = ran.outcome.step
    if step is None or ran.outcome.kind == "passes":
        return
    count = max(len(ran.trace.steps), step + 1)
    panels[0].set_xlim(-0.5, count - 0.5)
    for axes in panels[1:]:
        axes.axvline(step, color=FAILURE, linewidth=1.2)
        if count <= MOST_WIDE_STEPS:
            axes.axvspan(step - 0.5, step + 0.5, color=FAILURE, alpha=0.14, linewidth=0, zorder=0)
    side = 1 if step < count / 2 else -1
    batch = panels[1]
    height = batch.get_ylim()[1]
    batch.plot([step], [height * 0.94], marker="X", color=FAILURE, markersize=8, markeredgecolor="white")
    batch.annotate(
        f"{facts.mark(ran.outcome)}, step {step}",
        (step, height * 0.94),
        (side * 9, 0),
        textcoords="offset points",
        ha="left" if side > 0 else "right",
        va="center",
        color=FAILURE,
        weight="bold",
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5, "alpha": 0.85},
    )


def _legend(ran: Ran) -> Iterator[Patch | Line2D]:
    kinds = {kind_of(step) for step in ran.trace.steps}
    for kind, colour in COLOURS.items():
        if kind in kinds:
            yield Patch(facecolor=colour, label=kind)
    if any((step.padded_size or 0) > step.batch_size for step in ran.trace.steps):
        yield Patch(facecolor="none", edgecolor=PALE, hatch="//////", linewidth=0, label="graph padding")
    if ran.outcome.kind != "passes" and ran.outcome.step is not None:
        yield Line2D([], [], color=FAILURE, marker="X", markeredgecolor="white", label="failure")
