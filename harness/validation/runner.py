"""The stages in order, quickest to fail first, until one fails."""

from collections.abc import Callable, Iterator
from time import monotonic

from harness.engine.device import Device
from harness.search.progress import Progress
from harness.validation import acceptance, known, main_job, searching, soak, speed, starting, tokens
from harness.validation.lab import Lab
from harness.validation.plan import Plan
from harness.validation.record import Record
from harness.validation.stage import INTERRUPTED, Stage, Status
from harness.validation.verdict import BY_PROFILE, EARLIER

LEAST_SEARCH_SECONDS = 10.0
NO_GPU = "no GPU was found, and one was asked for: see `toggle-harness doctor`"


def validate(plan: Plan, record: Record, watch: Callable[[Progress], None]) -> Iterator[Stage]:
    """Run what hasn't passed already; a stage for each name, whatever happens."""
    if plan.device is Device.CUDA and Device.auto() is not Device.CUDA:
        yield Stage(name=starting.NAME, status=Status.UNPROVEN, said=NO_GPU)
        yield from (_left_out(name, EARLIER) for name, _, _ in _stages(plan, record) if name != starting.NAME)
        return
    why: str | None = None
    with Lab(plan, watch) as lab:
        for name, wanted, run in _stages(plan, record):
            if why is not None:
                yield _left_out(name, why)
            elif not wanted:
                yield _left_out(name, BY_PROFILE)
            elif name in record.stages and name != starting.NAME:  # without which there are no engines
                yield record.stages[name]
                why = EARLIER if record.stages[name].status is Status.FAILED else None
            else:
                stage, why = _run(lab, record, name, run)
                yield stage


def _run(lab: Lab, record: Record, name: str, run: Callable[[Lab], Stage]) -> tuple[Stage, str | None]:
    """A stage, written down, and why no other is to follow."""
    try:
        stage = run(lab)
        record.add(stage)
    except KeyboardInterrupt:  # it didn't say how far it had come: not written down
        stage = Stage(name=name, status=Status.UNPROVEN, said=INTERRUPTED, coverage=lab.coverage())
    if stage.said == INTERRUPTED:
        return stage, INTERRUPTED
    hopeless = name == starting.NAME and not lab.workers
    return stage, EARLIER if hopeless or stage.status is Status.FAILED else None


def _left_out(name: str, why: str) -> Stage:
    return Stage(name=name, status=Status.LEFT_OUT, said=why)


def _stages(plan: Plan, record: Record) -> Iterator[tuple[str, bool, Callable[[Lab], Stage]]]:
    """Name, whether the profile has it, and what to run.

    The search gets the time that is left when it is asked for, less what an interrupted one has had.
    """
    budget, earlier = plan.profile.budget, record.begun.get(searching.NAME)
    spent = sum(stage.seconds for stage in record.stages.values()) + (earlier.seconds if earlier else 0)
    began = monotonic() - spent

    def search(lab: Lab) -> Stage:
        left = budget.total - budget.soak - budget.speed - (monotonic() - began)
        return searching.searched(lab, max(LEAST_SEARCH_SECONDS, left), earlier)

    yield starting.NAME, True, starting.starts
    yield main_job.NAME, True, main_job.main_job
    yield known.NAME, True, known.known
    yield tokens.NAME, budget.tokens > 0, tokens.same_tokens
    yield acceptance.NAME, budget.acceptance > 0, acceptance.acceptance
    yield searching.NAME, True, search
    yield soak.NAME, budget.soak > 0, soak.soak
    yield speed.NAME, budget.speed > 0, speed.speed
