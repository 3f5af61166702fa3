"""The first stages: the patched SGLang starts, and survives the story's sequence."""

from harness.configuration import Worker
from harness.errors import BrokenPatch
from harness.isolation.ran import Ran
from harness.patches.overlay import copy_for
from harness.patches.stack import sources
from harness.program import Program
from harness.validation.ending import Ending
from harness.validation.lab import Lab
from harness.validation.stage import Stage

STARTS, MAIN_JOB = "applies and starts", "main job"


def starts(lab: Lab) -> Stage:
    """Boot an engine for each worker; those that SGLang refuses are left out from here on."""
    ending = Ending(lab, STARTS)
    try:
        copy_for(sources(lab.plan.patch))
    except BrokenPatch as error:
        return ending.wrong(str(error))
    programs = [Program(config=lab.plan.config(worker)) for worker in lab.workers]
    ran = list(lab.side_by_side(lab.run, programs))
    broken = next((one for one in ran if one is not None and one.outcome.kind != "passes"), None)
    if broken is not None:
        return ending.failed(broken, f"the scheduler doesn't start with worker {broken.program.config.worker}")
    started = [one.program.config.worker for one in ran if one is not None]
    reasons = dict(lab.progress.refused)
    lab.workers = tuple(worker for worker in lab.workers if worker in started)
    if not started:
        return ending.unproven(f"refused: {next(iter(reasons.values()))}")
    without = "".join(f"; {config.worker} refused: {reason}" for config, reason in reasons.items())
    return ending.passed(f"starts with worker {' and '.join(lab.workers)}{without}")


def main_job(lab: Lab) -> Stage:
    """Batch sizes below, far above and below the threshold again; both modes must have run."""
    ending = Ending(lab, MAIN_JOB)
    sizes = sizes_across(lab.plan.threshold)
    programs = [Program.from_batch_sizes(lab.plan.config(worker), sizes) for worker in lab.workers]
    stuck: list[Worker] = []
    for ran in lab.side_by_side(lab.run, programs):
        if ran is None:
            continue
        if ran.outcome.kind != "passes":
            return ending.failed(ran, f"batch sizes {_listed(sizes)}, worker {ran.program.config.worker}")
        if not switched(ran):
            stuck.append(ran.program.config.worker)
    if stuck:
        return ending.unproven(
            f"worker {' and '.join(stuck)}: batch sizes {_listed(sizes)}, and speculation wasn't switched off and on: "
            f"does the patch take its threshold from {lab.plan.threshold_setting}, when a scheduler starts? "
            "For a patch of one worker alone give --worker"
        )
    return ending.passed(f"batch sizes {_listed(sizes)} with worker {' and '.join(lab.workers)}: all checks pass")


def sizes_across(threshold: int) -> tuple[int, ...]:
    """1, 10, 3 at the story's threshold of 5."""
    return 1, 2 * threshold, max(1, threshold - 2)


def switched(ran: Ran) -> bool:
    """Whether speculation was switched off, and on again."""
    return bool(ran.labels["switched off"] and ran.labels["switched on"])


def _listed(sizes: tuple[int, ...]) -> str:
    return ", ".join(map(str, sizes))
