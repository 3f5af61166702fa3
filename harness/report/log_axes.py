"""Curves by a number of requests, both scales logarithmic and labelled with plain numbers."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import LogFormatter, NullLocator, ScalarFormatter


def by_requests(axes: Axes, sizes: Sequence[int], x: str, y: str) -> None:
    """Scale and label axes whose curves are drawn, with a tick at each of `sizes`."""
    axes.set(xscale="log", yscale="log", xlabel=x, ylabel=y)
    axes.set_xticks(sizes)
    axes.xaxis.set_major_formatter(ScalarFormatter())
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(ScalarFormatter())
    axes.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(1, 0.4)))
