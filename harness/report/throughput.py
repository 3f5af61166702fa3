"""Throughput by concurrency, on logarithmic scales: all engines, where the untoggled ones cross, their envelope."""

import math
from collections.abc import Sequence
from io import BytesIO

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from harness.bench.contest import ALWAYS, PLAIN, PLAIN_NO_OVERLAP
from harness.bench.throughput import Throughput
from harness.report.log_axes import by_requests
from harness.report.timeline import INK, PALE, STYLE

SIZE = (7.0, 4.2)
"""Inches."""
LOOKS = {
    PLAIN: ("#E69F00", "-"),
    PLAIN_NO_OVERLAP: ("#E69F00", ":"),
    ALWAYS: ("#0072B2", "-"),
    "warm": ("#009E73", "--"),
    "plain-strategy": ("#CC79A7", "--"),
}
"""Colour and dashes of each engine: Okabe and Ito's, told apart by every kind of colour vision."""
Point = tuple[float, float]


def picture(measured: Throughput, kind: str = "svg") -> bytes:
    """As `svg` or `png`, the same bytes for the same figures. Bars reach from the worst round to the best."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=SIZE)
        axes = figure.subplots()
        for name in measured.contest.engines:
            _curve(axes, measured, name)
        plain, spec = (_points(measured, name) for name in (measured.contest.plain_in_its_loop, ALWAYS))
        _envelope(axes, plain, spec)
        axes.set_title(_wrapped(measured.contest.title), fontsize=8)
        by_requests(axes, measured.concurrencies, "concurrency (requests in flight)", "tokens / s")
        axes.legend(frameon=False, fontsize=8, loc="lower right")
        figure.tight_layout()
        written = BytesIO()
        figure.savefig(written, format=kind, metadata={"Date": None} if kind == "svg" else {"Software": None})
        return written.getvalue()


def _wrapped(title: str) -> str:
    """In two lines, broken at the comma next to the middle."""
    commas = [place for place, character in enumerate(title) if character == ","]
    middle = min(commas, key=lambda place: abs(place - len(title) / 2))
    return f"{title[: middle + 1]}\n{title[middle + 2 :]}"


def _points(measured: Throughput, name: str) -> list[Point]:
    rates = ((size, measured.median_rate(name, size)) for size in measured.concurrencies)
    return [(size, rate) for size, rate in rates if rate]


def _curve(axes: Axes, measured: Throughput, name: str) -> None:
    colour, dashes = LOOKS[name]
    points = _points(measured, name)
    if not points:
        return
    rounds = [measured.rates(name, int(size)).values() for size, _ in points]
    spread = [
        [rate - min(of) for (_, rate), of in zip(points, rounds, strict=True)],
        [max(of) - rate for (_, rate), of in zip(points, rounds, strict=True)],
    ]
    sizes, rates = zip(*points, strict=True)
    axes.errorbar(sizes, rates, spread, fmt=dashes, color=colour, marker="o", ms=3.5, capsize=2, lw=1.4, label=name)


def _envelope(axes: Axes, one: Sequence[Point], other: Sequence[Point]) -> None:
    """Shade what lies under the better of two curves, and mark where they cross."""
    rates = dict(one), dict(other)
    sizes = sorted(rates[0].keys() & rates[1].keys())
    if not sizes:
        return
    crossings = crossing_points([(size, rates[0][size]) for size in sizes], [(size, rates[1][size]) for size in sizes])
    best = sorted([*((size, max(rates[0][size], rates[1][size])) for size in sizes), *crossings])
    lowest = min(min(rates[0].values()), min(rates[1].values()))
    axes.fill_between(
        [size for size, _ in best],
        [rate for _, rate in best],
        lowest / 2,
        color=PALE,
        alpha=0.15,
        lw=0,
        label="envelope of plain and always-spec",
    )
    axes.set_ylim(bottom=lowest / 2)
    for size, rate in crossings:
        axes.plot([size], [rate], "x", color=INK, ms=8, zorder=5)
        axes.annotate(f"{size:.0f}", (size, rate), textcoords="offset points", xytext=(0, 9), ha="center", fontsize=8)


def crossing_points(one: Sequence[Point], other: Sequence[Point]) -> list[Point]:
    """Where two curves, straight on logarithmic scales between the same sizes, change places."""
    crossings = []
    for (left, a), (right, b), (_, c), (_, d) in zip(one, one[1:], other, other[1:], strict=False):
        before, after = math.log(a / c), math.log(b / d)
        if before * after < 0:
            share = before / (before - after)
            crossings.append((left * (right / left) ** share, a * (b / a) ** share))
    return crossings
