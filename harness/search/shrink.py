"""Make a failing program shorter, each candidate run again, until nothing helps or time is up."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from time import monotonic

from harness.errors import UsageError
from harness.isolation.ran import Ran
from harness.program import Program
from harness.search.simplify import candidates
from harness.search.weight import signature, weight


class Shortest:
    """The simplest run so far that fails like the first one that failed."""

    def __init__(self) -> None:
        self.ran: Ran | None = None
        self.first: Ran | None = None
        self.others: dict[tuple[str, str], Ran] = {}
        """Failures of another kind that came along, by their signature."""

    def take(self, ran: Ran) -> bool:
        """Whether this run fails as the others do, if it fails at all; it is kept if it is the simplest."""
        if ran.outcome.kind == "passes":
            return False
        if self.ran is None:
            self.first = self.ran = ran
            return True
        if signature(ran.outcome) != signature(self.ran.outcome):
            self.others.setdefault(signature(ran.outcome), ran)
            return False
        if weight(ran.program) < weight(self.ran.program):
            self.ran = ran
        return True


def domain_pass(
    shortest: Shortest,
    run: Callable[[Program], Ran],
    until: float,
    watch: Callable[[Ran], None] = lambda _: None,
    at_once: int = 1,
) -> None:
    """Try simpler programs, each from the simplest so far, until none fails any more or the clock says `until`.

    `run` is called from `at_once` threads. The programs tried are the same each time, and so is what is found.
    """
    tried: set[Program] = set()
    with ThreadPoolExecutor(at_once) as pool:
        while (simpler := _simpler(shortest, partial(_together, pool, run), tried, until, at_once)) is not None:
            shortest.take(simpler)
            watch(simpler)


def _simpler(
    shortest: Shortest,
    run: Callable[[Sequence[Program]], Sequence[Ran]],
    tried: set[Program],
    until: float,
    at_once: int,
) -> Ran | None:
    """The simplest of the first few that fail likewise; None where there is no simpler one, or no time."""
    assert shortest.ran is not None
    now = shortest.ran
    worth_trying = (
        candidate
        for candidate in (now.until, *candidates(now.program))
        if candidate not in tried and weight(candidate) < weight(now.program)
    )
    while monotonic() < until and (few := list(dict.fromkeys(islice(worth_trying, at_once)))):
        tried.update(few)
        alike = [
            ran for ran in run(few) if ran.outcome.kind != "passes" and signature(ran.outcome) == signature(now.outcome)
        ]
        if alike:
            return min(alike, key=lambda ran: weight(ran.program))
    return None


def _together(pool: ThreadPoolExecutor, run: Callable[[Program], Ran], programs: Sequence[Program]) -> Sequence[Ran]:
    """Run programs side by side, without those that SGLang refuses, or whose configuration can't hold them."""

    def attempt(program: Program) -> Ran | None:
        try:
            return run(program)
        except UsageError:
            return None

    return [ran for ran in pool.map(attempt, programs) if ran is not None]
