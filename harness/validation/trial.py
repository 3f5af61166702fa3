"""What a validation says of patches that are known to be wrong, and whether for the right reason."""

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic

from harness.cases import load
from harness.engine.device import Device
from harness.outcome import Outcome
from harness.patches.stack import UNCHANGED
from harness.patches.workers import CASES, strategy_of, written_for
from harness.validation.plan import Plan, workers_of
from harness.validation.profile import Profile
from harness.validation.record import Record
from harness.validation.runner import validate
from harness.validation.stage import INTERRUPTED, Status
from harness.validation.verdict import Verdict, judge


@dataclass(frozen=True, slots=True)
class Tried:
    """One patch that was validated."""

    patch: str
    verdict: Verdict
    stage: str | None
    """The one that failed."""
    outcome: Outcome | None
    """How the shortest program fails."""
    expected: Outcome | None
    """How the patch's own case does; None of the fixed toggle."""
    seconds: float

    @property
    def right(self) -> bool:
        """Whether the verdict is the right one, and for the reason that the case names."""
        if self.expected is None:
            return self.verdict is Verdict.SAFE
        alike = self.outcome is not None and (self.outcome.kind, self.outcome.check) == (
            self.expected.kind,
            self.expected.check,
        )
        return self.verdict is Verdict.UNSAFE and alike


def try_out(patch: str, device: Device, gpus: tuple[str | None, ...], profile: Profile, at_once: int) -> Tried:
    """Validate a built-in patch, with everything but a report; raises KeyboardInterrupt if it is stopped."""
    only, began = written_for(patch), monotonic()
    with tempfile.TemporaryDirectory(prefix="toggle-harness-") as folder:
        plan = Plan(patch=patch, device=device, profile=profile, output=Path(folder), gpus=gpus, at_once=at_once)
        plan = replace(plan, workers=workers_of(only), strategy=strategy_of(patch))
        record = Record(plan, resume=False)
        stages = list(validate(plan, record, lambda _: None))
        record.close()
    if any(stage.said == INTERRUPTED for stage in stages):
        raise KeyboardInterrupt
    failed = next((stage for stage in stages if stage.status is Status.FAILED), None)
    return Tried(
        patch=patch,
        verdict=judge(stages, plan.most_skipped, plan.changed)[0],
        stage=failed.name if failed else None,
        outcome=failed.failure.outcome if failed and failed.failure else None,
        expected=None if patch == UNCHANGED else load(CASES / patch).expected.on(device),
        seconds=monotonic() - began,
    )
