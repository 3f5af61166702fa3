"""How stages end: passed, unproven, or failed with a reproducer."""

from time import monotonic

from harness.errors import UsageError
from harness.isolation.engines import FATAL
from harness.isolation.interruption import heeded
from harness.isolation.ran import Ran
from harness.report import facts, reproducer
from harness.search.finding import Finding
from harness.validation.lab import Lab
from harness.validation.stage import Failure, Stage, Status

FINDINGS = "findings"
"""Folder of reproducers, in the report's."""
OUT_OF_MEMORY = ("out of memory", "OutOfMemoryError")


class Ending:
    """Makes the stage of a name, with the time since it was made and all that was counted meanwhile."""

    def __init__(self, lab: Lab, name: str) -> None:
        self._lab, self._name, self._started = lab, name, monotonic()
        lab.progress.doing = name

    def passed(self, said: str, *figures: tuple[str, str]) -> Stage:
        """Nothing is wrong; with configurations that SGLang refused, nothing is proven either."""
        refused = list(self._lab.progress.refused.values())
        if refused:
            return self.unproven(f"{said}; {len(refused)} configurations refused: {refused[0]}", *figures)
        return self._stage(Status.PASSED, said, figures)

    def unproven(self, said: str, *figures: tuple[str, str]) -> Stage:
        """Nothing is wrong, but nothing proven."""
        return self._stage(Status.UNPROVEN, said, figures)

    def failed(self, ran: Ran, what: str) -> Stage:
        """A run failed: make it shorter, and write it down."""
        return self.found(self._lab.pursue(ran), f"{what}: {facts.in_full(ran.outcome)}")

    def found(self, finding: Finding, said: str) -> Stage:
        """A failure that is as short as it gets.

        Processes that were killed, hung or had no memory, and never again from cold, may be the machine's doing: that
        is no verdict on the patch, and none for it.
        """
        with heeded():  # a person who has waited for so long shall not lose it to a Ctrl-C now
            failure = self._kept(finding)
        if _machines_doing(finding):
            stage = self._stage(Status.UNPROVEN, f"{said}; not once in {failure.cold[1]} cold runs: run it again", ())
        else:
            stage = self._stage(Status.FAILED, said, ())
        return stage.model_copy(update={"failure": failure})

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


def _machines_doing(finding: Finding) -> bool:
    outcome, (alike, runs) = finding.ran.outcome, finding.rate
    suspect = outcome.kind in FATAL or any(words in (outcome.text or "") for words in OUT_OF_MEMORY)
    return suspect and runs > 0 and not alike and all(cold.kind == "passes" for cold in finding.confirmations)
