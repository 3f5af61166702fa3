"""The first stage: the patched SGLang starts."""

from pathlib import Path

from harness.engine.device import Device
from harness.errors import BrokenPatch
from harness.patches.changed import changed_files, sources_of
from harness.patches.diffs import installed_package
from harness.patches.overlay import copy_for
from harness.patches.stack import sources
from harness.program import Program
from harness.validation.ending import Ending
from harness.validation.lab import Lab
from harness.validation.stage import Stage

NAME = "applies and starts"


def starts(lab: Lab) -> Stage:
    """Boot an engine for each worker; those that SGLang refuses are left out from here on, and stay unproven."""
    ending = Ending(lab, NAME)
    try:
        folder = copy_for(sources(lab.plan.patch))
    except BrokenPatch as error:
        return ending.wrong(str(error))
    programs = [Program(config=lab.plan.config(worker)) for worker in lab.workers]
    ran = list(lab.side_by_side(lab.run, programs))
    broken = next((one for one in ran if one is not None and one.outcome.kind != "passes"), None)
    if broken is not None:
        return ending.failed(broken, f"the scheduler doesn't start with worker {broken.program.config.worker}")
    started = [one.program.config.worker for one in ran if one is not None]
    refused = [f"worker {config.worker} is refused: {reason}" for config, reason in lab.progress.refused.items()]
    lab.workers = tuple(worker for worker in lab.workers if worker in started)
    if not started:
        return ending.unproven("; ".join(refused))
    said = f"starts with worker {' and '.join(lab.workers)}"
    if refused:
        return ending.unproven(f"{said}, but {'; '.join(refused)}: for a patch of one worker alone give --worker")
    not_run = _not_run(lab, folder)
    if not_run:
        return ending.unproven(
            f"{said}, but the patch changes {', '.join(not_run)}, for which the emulated device has a stand-in of its "
            "own: only a GPU runs it"
        )
    return ending.passed(said)


def _not_run(lab: Lab, folder: Path | None) -> list[str]:
    """What a diff changes and the emulated device doesn't run."""
    if folder is None or lab.plan.device is not Device.CPU:
        return []
    from harness.emulation.stand_ins import not_run  # imports torch

    files = changed_files(sources(lab.plan.patch))
    before, after = (sources_of(files, place) for place in (installed_package().parent, folder))
    return [name for module, source in after.items() for name in not_run(module, before.get(module, ""), source)]
