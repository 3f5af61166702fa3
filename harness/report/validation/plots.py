"""Throughput and step time by batch size, as SVG."""

from collections.abc import Iterator, Sequence
from io import StringIO

import matplotlib
from matplotlib.figure import Figure

from harness.report.log_axes import by_requests
from harness.report.timeline import STYLE
from harness.validation.stage import Curve

SIZE = (7.0, 4.0)
"""Inches."""
COLOURS = {"plain": "#E69F00", "always-spec": "#0072B2", "patched": "#009E73"}
DASHES = {"v1": "-", "v2": "--"}


def pictures(curves: Sequence[Curve]) -> Iterator[str]:
    """Two of them, the same bytes for the same curves."""
    yield _picture(curves, "tokens_per_s", "Throughput", "tokens / s")
    yield _picture(curves, "step_ms", "Time of a decode step", "ms")


def _picture(curves: Sequence[Curve], field: str, title: str, unit: str) -> str:
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=SIZE)
        axes = figure.subplots()
        for curve in curves:
            colour = next(colour for name, colour in COLOURS.items() if name in curve.engine)
            dashes = next(dash for worker, dash in DASHES.items() if worker in curve.engine)
            axes.plot(
                curve.batch_sizes, getattr(curve, field), dashes, color=colour, marker="o", ms=3.5, label=curve.engine
            )
        axes.set_title(title)
        by_requests(axes, curves[0].batch_sizes, "requests in the batch", unit)
        axes.legend(frameon=False, fontsize=8, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.17))
        figure.tight_layout()
        written = StringIO()
        figure.savefig(written, format="svg", metadata={"Date": None})
        return written.getvalue()
