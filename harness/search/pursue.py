"""From a run that failed to a finding: shrunk further, run again from cold, and under other conditions."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from time import monotonic

from harness.errors import UsageError
from harness.isolation.child import Interrupted
from harness.isolation.engines import FATAL, Engines
from harness.isolation.interruption import Stopped
from harness.isolation.messages import Run
from harness.isolation.ran import Ran
from harness.outcome import Outcome
from harness.program import Program
from harness.search.confirm import confirmations, variants
from harness.search.environment import environment
from harness.search.finding import Finding
from harness.search.progress import Progress
from harness.search.shrink import Shortest, domain_pass
from harness.search.weight import signature

SHORT_SECONDS = 1.0
"""A run that takes less waits for its turn on one engine sooner than for another to boot."""


def _any_alike(shortest: Shortest, colds: Sequence[Ran]) -> bool:
    assert shortest.ran is not None
    seen = signature(shortest.ran.outcome)
    return any(cold.outcome.kind != "passes" and signature(cold.outcome) == seen for cold in colds)


@dataclass(frozen=True, slots=True)
class Pursuit:
    """How a failure is to be pursued."""

    engines: Engines
    seed: int | None
    at_once: int
    """Programs that run side by side."""
    stopped: Stopped
    progress: Progress

    def __call__(self, shortest: Shortest, until: float) -> tuple[Finding, UsageError | None]:
        """Pursue what `shortest` holds, shrinking until `until` (by `monotonic`).

        What a bug leaves in its process can make the next program fail, however simple. So where no cold run ends as
        the shortest did, the program that failed first is shrunk in cold processes alone, for as long again. Stopped
        meanwhile, it returns what is known by then; also with an error that ended it, such as a full disk.
        """
        assert shortest.first is not None
        first, began = shortest.first, monotonic()
        nursery = self.engines.nursery
        colds: list[Ran] = []
        tried: list[tuple[str, Outcome]] = []
        error: UsageError | None = None
        surroundings = environment(nursery.device)
        try:
            self.progress.doing = "shrinking"
            leaves_its_engine = first.outcome.kind not in FATAL and not first.outcome.device_fault
            patient = leaves_its_engine and first.engine_seconds < SHORT_SECONDS
            domain_pass(shortest, partial(self._run, patient=patient), until, self._watch, self.at_once)
            colds = self._confirmed(shortest)
            if not _any_alike(shortest, colds) and (cold := self._shrunk_from_cold(first, until - began)) is not None:
                shortest = cold
                colds = self._confirmed(shortest)
            assert shortest.ran is not None
            tried = variants(shortest.ran, nursery, nursery.device, self.stopped)
        except Interrupted:
            pass
        except UsageError as raised:  # what was found isn't lost with it
            error = raised
        assert shortest.ran is not None
        finding = Finding(
            ran=shortest.ran,
            found=first.program,
            device=nursery.device,
            seed=self.seed,
            confirmations=[cold.outcome for cold in colds],
            variants=tried,
            environment=surroundings.result(),
        )
        return finding, error

    def _confirmed(self, shortest: Shortest) -> list[Ran]:
        assert shortest.ran is not None
        self.progress.doing = "running it again from cold"
        return confirmations(shortest.ran, self.engines.nursery, self.at_once, self.stopped)

    def _shrunk_from_cold(self, first: Ran, seconds: float) -> Shortest | None:
        """None where the program that failed first doesn't in a cold process."""
        self.progress.doing = "shrinking in cold processes"
        shortest, until = Shortest(), monotonic() + seconds
        shortest.take(self._run_cold(first.program))
        if shortest.ran is None:
            return None
        domain_pass(shortest, self._run_cold, until, self._watch, self.at_once)
        return shortest

    def _run_cold(self, program: Program) -> Ran:
        ran = self.engines.nursery.run(Run(program), self.stopped)
        self.progress.programs += 1
        return ran

    def _run(self, program: Program, patient: bool) -> Ran:
        ran = self.engines.run(Run(program), self.stopped, patient)
        self.progress.programs += 1
        return ran

    def _watch(self, ran: Ran) -> None:
        self.progress.failure = ran
