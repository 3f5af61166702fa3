"""What a search did, in numbers: for the console, live and at the end."""

from rich.table import Table

from harness.search.labels import ALPHABET
from harness.search.progress import Progress


def line(progress: Progress) -> str:
    """One line for now; of work that runs no programs, what it is."""
    if not progress.programs:
        return f"{progress.doing}: {progress.seconds:.0f} s"
    seconds = max(progress.seconds, 1e-9)
    best = "none" if progress.failure is None else f"{len(progress.failure.program.operations)} operations"
    return (
        f"{progress.doing}: {progress.programs} programs ({progress.programs / seconds:.1f}/s), "
        f"{progress.steps} steps ({progress.steps / seconds:.0f}/s), {progress.crossing} crossed, "
        f"best failure so far: {best}"
    )


def reached(progress: Progress) -> Table:
    """How often each thing of the alphabet was reached; what never was comes last."""
    table = Table("reached", "times", box=None, pad_edge=False)
    for label in sorted(ALPHABET, key=lambda label: progress.labels[label] == 0):
        times = progress.labels[label]
        table.add_row(label, str(times), style="" if times else "dim")
    return table


def totals(progress: Progress) -> list[str]:
    """Lines for the end."""
    lines = [
        f"{progress.programs} programs, {progress.steps} steps on {len(progress.configurations)} configurations "
        f"in {progress.seconds:.0f} s; {progress.crossing} programs crossed the threshold",
    ]
    for (check, reason), times in sorted(progress.skipped.items()):
        lines.append(f"{check} skipped {times} times: {reason}")
    for config, reason in progress.refused.items():
        lines.append(f"refused: {config}: {reason}")
    return lines
