"""How stages end: passed, unproven, or failed with a reproducer."""

from time import monotonic

from harness.errors import UsageError
from harness.isolation.ran import Ran
from harness.report import facts, reproducer
from harness.search.finding import Finding
from harness.validation.lab import Lab
from harness.validation.stage import Failure, Stage, Status

FINDINGS = "findings"
"""Folder of reproducers, in the report's."""


class Ending:
    """Makes the stage of a name, with the time since it was made and all that was counted meanwhile."""

    def __init__(self, lab: Lab, name: str) -> None:
        self._lab, self._name, self._started = lab, name, monotonic()
        lab.progress.doing = name

    def passed(self, said: str, *figures: tuple[str, str]) -> Stage:
        """Nothing is wrong."""
        return self._stage(Status.PASSED, said, figures)

    def unproven(self, said: str, *figures: tuple[str, str]) -> Stage:
        """Nothing is wrong, but nothing proven."""
        return self._stage(Status.UNPROVEN, said, figures)

    def failed(self, ran: Ran, what: str) -> Stage:
        """A run failed: make it shorter, and write it down."""
        return self.found(self._lab.pursue(ran), f"{what}: {facts.in_full(ran.outcome)}")

    def found(self, finding: Finding, said: str) -> Stage:
        """A failure that is as short as it gets."""
        stage = self._stage(Status.FAILED, said, ())
        return stage.model_copy(update={"failure": self._kept(finding)})

    def wrong(self, said: str, *figures: tuple[str, str]) -> Stage:
        """Something is wrong that no single program shows."""
        return self._stage(Status.FAILED, said, figures)

    def _stage(self, status: Status, said: str, figures: tuple[tuple[str, str], ...]) -> Stage:
        return Stage(
            name=self._name,
            status=status,
            said=said,
            seconds=monotonic() - self._started,
            coverage=self._lab.coverage(),
            facts=figures,
        )

    def _kept(self, finding: Finding) -> Failure:
        outcome, folder = finding.ran.outcome, None
        if outcome.step is not None:
            try:
                folder = reproducer.write(finding, self._lab.plan.output / FINDINGS)
            except UsageError:  # the report says what failed in any case
                folder = None
        return Failure(
            outcome=outcome,
            message=finding.ran.message or finding.ran.output,
            folder=None if folder is None else f"{FINDINGS}/{folder.name}",
            operations=len(finding.program.operations) if outcome.step is not None else None,
            cold=finding.rate,
        )
