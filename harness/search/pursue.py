"""From a run that failed to a finding: shrunk further, run again from cold, and under other conditions."""

from collections.abc import Callable
from dataclasses import dataclass

from harness.errors import UsageError
from harness.isolation.child import Interrupted
from harness.isolation.engines import Engines
from harness.isolation.messages import Run
from harness.isolation.ran import Ran
from harness.outcome import Outcome
from harness.program import Program
from harness.search.confirm import confirmations, variants
from harness.search.environment import environment
from harness.search.finding import Finding
from harness.search.progress import Progress
from harness.search.shrink import Shortest, domain_pass


@dataclass(frozen=True, slots=True)
class Pursuit:
    """How a failure is to be pursued."""

    engines: Engines
    seed: int | None
    at_once: int
    """Programs that run side by side."""
    stopped: Callable[[], bool]
    progress: Progress

    def __call__(self, shortest: Shortest, until: float) -> tuple[Finding, UsageError | None]:
        """Pursue what `shortest` holds, shrinking until `until` (by `monotonic`).

        Stopped meanwhile, it returns what is known by then; also with an error that ended it, such as a full disk.
        """
        assert shortest.first is not None
        nursery = self.engines.nursery
        colds: list[Ran] = []
        tried: list[tuple[str, Outcome]] = []
        error: UsageError | None = None
        surroundings = environment(nursery.device)
        try:
            self.progress.doing = "shrinking"
            domain_pass(shortest, self._run, until, self._watch, self.at_once)
            assert shortest.ran is not None
            self.progress.doing = "running it again from cold"
            colds = confirmations(shortest.ran, nursery, self.at_once, self.stopped)
            tried = variants(shortest.ran, nursery, nursery.device, self.stopped)
        except Interrupted:
            pass
        except UsageError as raised:  # what was found isn't lost with it
            error = raised
        assert shortest.ran is not None
        finding = Finding(
            ran=shortest.ran,
            found=shortest.first.program,
            device=nursery.device,
            seed=self.seed,
            confirmations=[cold.outcome for cold in colds],
            variants=tried,
            environment=surroundings.result(),
        )
        return finding, error

    def _run(self, program: Program) -> Ran:
        ran = self.engines.run(Run(program), self.stopped)
        self.progress.programs += 1
        return ran

    def _watch(self, ran: Ran) -> None:
        self.progress.failure = ran
