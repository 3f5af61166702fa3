"""The checks: one invariant each, evaluated on every step of a program while it runs."""

from collections import Counter
from collections.abc import Iterable, Sequence

from harness.checks.aliasing import Aliasing
from harness.checks.base import Check, Findings, Skipped, Violation
from harness.checks.draft import DraftState
from harness.checks.graphs import Graphs
from harness.checks.lengths import LengthsV1, LengthsV2
from harness.checks.losslessness import Losslessness
from harness.checks.progress import Progress
from harness.checks.shapes import Shapes
from harness.checks.slots import Slots
from harness.checks.spec_info import SpecInfo
from harness.checks.sums import Sums
from harness.checks.tokens import Tokens
from harness.errors import DEVICE_FAULT, UsageError
from harness.observation import After, Compared, DraftCache, Forward, Launch, Replay
from harness.program import Program

FAMILIES: tuple[type[Check], ...] = (
    Shapes,
    Slots,
    LengthsV1,
    LengthsV2,
    Sums,
    SpecInfo,
    Graphs,
    Aliasing,
    Tokens,
    Losslessness,
    DraftState,
    Progress,
)
NAMES = tuple(check.name for check in FAMILIES)
MOMENTS = ("at_launch", "at_forward", "at_replay", "compared", "after_step", "draft_caches")
"""Methods of a `Check`; only those that it has of its own are called."""


class CheckFailed(Exception):
    """A step violated invariants; `violations` are all that were found at that moment, by check."""

    def __init__(self, step: int, violations: Sequence[tuple[str, Violation]]) -> None:
        self.step, self.violations = step, violations
        super().__init__("\n".join(f"step {step}, {check}: {violation}" for check, violation in violations))

    @property
    def check(self) -> str:
        """The first check that failed."""
        return self.violations[0][0]


def selected(text: str) -> tuple[type[Check], ...]:
    """Families named by number or name, e.g. `I1,I7-graphs`, or `all`; raises UsageError for an unknown one."""
    if text == "all":
        return FAMILIES
    chosen = []
    for word in text.split(","):
        found = [family for family in FAMILIES if word in (family.name, family.name.partition("-")[0])]
        if not found:
            raise UsageError(f"no check {word}: there are {', '.join(NAMES)}")
        chosen += found
    return tuple(family for family in FAMILIES if family in chosen)


class Checks:
    """The checks of one run; raises CheckFailed at the first moment at which any fails."""

    def __init__(
        self, program: Program, families: Iterable[type[Check]] = FAMILIES, excuse_sglang: bool = True
    ) -> None:
        checks = self._checks = [family(program) for family in families]
        for check in checks:
            check.excuse_sglang = excuse_sglang
        self._looking = {
            moment: [
                (check.name, getattr(check, moment))
                for check in checks
                if getattr(type(check), moment) is not getattr(Check, moment)
            ]
            for moment in MOMENTS
        }
        self._moments = 0
        self.skipped: Counter[tuple[str, str]] = Counter()
        """How often each check could not be evaluated, and why."""
        self.looked: Counter[str] = Counter()
        """Moments that each check looked at."""
        self.looked_in_part: Counter[str] = Counter()
        """Of these, those in which it left something out."""

    @property
    def evaluated(self) -> Counter[str]:
        """How often each check was evaluated; one that has nothing to look at in a moment is none the less."""
        return Counter({check.name: self._moments for check in self._checks if self._moments})

    @property
    def answered(self) -> Counter[str]:
        """How often each of the checks that may lack a right answer had one to compare with."""
        return Counter({check.name: check.answered for check in self._checks if check.answered})

    def at_launch(self, launch: Launch) -> None:
        """As a decode batch is handed to the worker."""
        self._judge(launch.step.index, "at_launch", launch)

    def at_forward(self, forward: Forward) -> None:
        """Before a forward of the target."""
        self._judge(forward.step.index, "at_forward", forward)

    def at_replay(self, step: int, replay: Replay) -> None:
        """Before a captured graph is replayed."""
        self._judge(step, "at_replay", replay)

    def compared(self, step: int, compared: Compared) -> None:
        """After a forward that ran in both ways."""
        self._judge(step, "compared", compared)

    def after_step(self, after: After) -> None:
        """After a step's result was processed."""
        self._judge(after.step.index, "after_step", after)

    def draft_caches(self, step: int, caches: list[DraftCache]) -> None:
        """At a spec step, of requests that draft from a prefill or a plain step; when idle, of the radix cache."""
        self._judge(step, "draft_caches", caches)

    def _judge(self, step: int, moment: str, seen: object) -> None:
        self._moments += 1
        violations: list[tuple[str, Violation]] = []
        try:
            for name, look in self._looking[moment]:
                self._look(name, look(seen), violations)
        except Exception as fault:  # of the device: what was found before is the better answer
            if violations:
                raise CheckFailed(step, violations) from fault
            raise
        if violations:
            raise CheckFailed(step, violations)

    def _look(self, name: str, findings: Findings, violations: list[tuple[str, Violation]]) -> None:
        """Let one check look, count what it leaves out, and add what it finds."""
        self.looked[name] += 1
        in_part = False
        try:
            for finding in findings:
                if isinstance(finding, Skipped):
                    self.skipped[name, finding.reason] += 1
                    in_part = True
                else:
                    violations.append((name, finding))
        except Exception as error:
            if DEVICE_FAULT in str(error):  # whoever reads the GPU first hears of it, whatever it looks for
                raise
            # A state that a check can't even be evaluated on is none that it allows.
            seen = f"{type(error).__name__}: {error}"
            violations.append((name, Violation("the state", "one that can be looked at", seen)))
        if in_part:
            self.looked_in_part[name] += 1
