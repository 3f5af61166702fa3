"""A trace as a table that grows while the program runs."""

from rich.console import Console
from rich.text import Text

from harness.trace import TraceStep

COLUMNS = (
    ("step", 5),
    ("forward mode", 14),
    ("decoded", 8),
    ("batch", 6),
    ("padded", 7),
    ("run as", 7),
    ("tokens out", 11),
    ("accepted", 9),
    ("waiting", 8),
    ("KV free", 8),
)
"""Name and width, in characters, of each column."""


class TraceTable:
    """Prints a heading, then a line for each step that it is given."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._started = False

    def add(self, step: TraceStep) -> None:
        """Print one step."""
        if not self._started:
            self._print([name for name, _ in COLUMNS], style="bold")
            self._started = True
        self._print(cells(step), style="dim" if step.forward_mode == "IDLE" else "")

    def _print(self, values: list[str], style: str) -> None:
        line = "".join(value.rjust(width) for value, (_, width) in zip(values, COLUMNS, strict=True))
        self._console.print(Text(line, style=style), soft_wrap=True)


def cells(step: TraceStep) -> list[str]:
    """One step's cells; a dash where there is nothing to say."""
    idle = step.batch_size == 0
    return [
        str(step.index),
        step.forward_mode,
        "spec" if step.spec else "plain" if step.plain else "-",
        "-" if idle else str(step.batch_size),
        str(step.padded_size or "-"),
        "-" if idle else "graph" if step.graph else "eager",
        "-" if idle else str(sum(step.tokens_out)),
        "-" if step.accepted is None else str(sum(step.accepted)),
        str(step.waiting),
        str(step.kv_free),
    ]
