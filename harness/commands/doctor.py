"""`toggle-harness doctor`: what this machine can run, and what is missing."""

from rich.console import Console
from rich.table import Table

from harness.diagnosis import Finding, Severity, examine

SYMBOLS = {Severity.OK: "[green]ok[/green]", Severity.NOTE: "[yellow]note[/yellow]", Severity.BAD: "[red]missing[/red]"}


def command() -> int:
    """Say what this machine can run and what is missing; exit code 1 if the main job can't run."""
    findings = examine()
    console = Console(highlight=False)
    console.print(_table(findings))
    bad = [finding for finding in findings if finding.severity is Severity.BAD]
    if bad:
        console.print(f"The main job can't run here: {', '.join(finding.subject for finding in bad)}.")
        return 1
    console.print("The main job can run here.")
    return 0


def _table(findings: list[Finding]) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    for finding in findings:
        table.add_row(SYMBOLS[finding.severity], finding.subject, finding.detail)
    return table
