"""How long a search takes from nothing but a patch to its reproducer, for patches that are known to be wrong."""

from dataclasses import dataclass

from harness.engine.device import Device
from harness.outcome import Outcome
from harness.patches.workers import strategy_of, written_for
from harness.program import Program
from harness.search.grid import grid
from harness.search.search import Plan, Search


@dataclass(frozen=True, slots=True)
class Hunted:
    """One patch that was searched."""

    patch: str
    outcome: Outcome | None
    """How the shortest program fails; None where none was found."""
    seconds: float
    """From the start of the search, SGLang imported, until the reproducer was confirmed, or until it gave up."""
    programs: int
    """Run until then, shrinking included."""
    program: Program | None
    same: int
    """Of the cold runs, how many ended as the shortest program's run did."""
    cold_runs: int


def hunt(patch: str, device: Device, gpu: str | None, seconds: float, seed: int, threads: int) -> Hunted:
    """Search one patch for `seconds`; what is found is shrunk after that. Raises KeyboardInterrupt if it is stopped."""
    configs = grid(written_for(patch), patch, strategy=strategy_of(patch))
    search = Search(Plan(configs, device, seed, seconds=seconds, threads=threads, gpus=(gpu,)))
    finding = search.run()
    if search.interrupted:
        raise KeyboardInterrupt
    same, cold_runs = finding.rate if finding else (0, 0)
    return Hunted(
        patch=patch,
        outcome=finding.ran.outcome if finding else None,
        seconds=search.progress.seconds,
        programs=search.progress.programs,
        program=finding.program if finding else None,
        same=same,
        cold_runs=cold_runs,
    )
