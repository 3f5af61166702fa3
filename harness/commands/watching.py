"""What runs now: a terminal's last line, or elsewhere a line now and then."""

from time import monotonic
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live

from harness.report import summary
from harness.search.progress import Progress

SAY_EVERY_SECONDS = 10.0


class Watching:
    """Shows the counts of a search or a stage while it runs."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, refresh_per_second=4, transient=True) if console.is_terminal else None
        self._said = monotonic()

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, progress: Progress) -> None:
        """These counts, now."""
        if self._live is not None:
            self._live.update(summary.line(progress))
        elif monotonic() - self._said > SAY_EVERY_SECONDS:
            self._said = monotonic()
            self._console.print(summary.line(progress), soft_wrap=True)
