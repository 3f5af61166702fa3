"""Make a failing program shorter, each candidate run again, until nothing helps or time is up."""

from collections.abc import Callable
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
    shortest: Shortest, run: Callable[[Program], Ran], until: float, watch: Callable[[Ran], None] = lambda _: None
) -> None:
    """Try simpler programs, each from the simplest so far, until none fails any more or the clock says `until`."""
    tried: set[Program] = set()
    while (simpler := _simpler(shortest, run, tried, until)) is not None:
        shortest.take(simpler)
        watch(simpler)


def _simpler(shortest: Shortest, run: Callable[[Program], Ran], tried: set[Program], until: float) -> Ran | None:
    assert shortest.ran is not None
    now = shortest.ran
    for candidate in (now.until, *candidates(now.program)):
        if monotonic() > until:
            return None
        if candidate in tried or weight(candidate) >= weight(now.program):
            continue
        tried.add(candidate)
        try:
            ran = run(candidate)
        except UsageError:  # SGLang refuses the simpler configuration, or it can't hold the program
            continue
        if ran.outcome.kind != "passes" and signature(ran.outcome) == signature(now.outcome):
            return ran
    return None
