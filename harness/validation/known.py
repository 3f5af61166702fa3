"""The stage of known sequences: every program that once broke a patch, under this one."""

from collections.abc import Iterator

from harness.cases import all_folders, load
from harness.program import Program
from harness.validation.ending import Ending
from harness.validation.lab import Lab
from harness.validation.stage import Stage

NAME = "known sequences"
SEQUENCES = ((1, 10, 3), (10, 1, 10), (1, 0, 1), (5, 6, 5, 6, 5), (16, 17, 16))
"""For thresholds of 5, the last for 16: the largest captured size and one more."""


def known(lab: Lab) -> Stage:
    """Run them all, however long that takes: they are few, and what they found once is likeliest to be there."""
    ending = Ending(lab, NAME)
    if not all_folders():
        return ending.unproven("this installation of the harness has no cases: install it anew")
    programs = list(known_programs(lab))
    passed = 0
    for name, ran in lab.side_by_side(lambda named: (named[0], lab.run(named[1])), programs):
        if ran is not None and ran.outcome.kind != "passes":
            return ending.failed(ran, f"the program of {name}")
        passed += ran is not None
    return ending.passed(f"{passed} of {len(programs)} programs that broke other patches pass")


def known_programs(lab: Lab) -> Iterator[tuple[str, Program]]:
    """Each with the case or the batch sizes that it comes from; those of one configuration follow each other."""
    named = [*_cases(lab), *_sequences(lab)]
    different: dict[Program, str] = {}
    for name, program in named:
        different.setdefault(program, name)
    order = {config: place for place, config in enumerate(dict.fromkeys(program.config for program in different))}
    for program in sorted(different, key=lambda program: order[program.config]):
        yield different[program], program


def _cases(lab: Lab) -> Iterator[tuple[str, Program]]:
    """Those with a toggle: SGLang's own findings need none, and no patch of a toggle mends them."""
    plan = lab.plan
    for folder in all_folders():
        program = load(folder).program
        config = program.config
        if config.toggle is not None and config.worker in lab.workers:
            kept = config.toggle.kept_tokens if plan.strategy == "plain" else None
            toggle = config.toggle.model_copy(update={"strategy": plan.strategy, "kept_tokens": kept})
            changes = {"patch": plan.patch, "threshold_setting": plan.threshold_setting, "toggle": toggle}
            yield folder.name, program.model_copy(update={"config": config.model_copy(update=changes)})


def _sequences(lab: Lab) -> Iterator[tuple[str, Program]]:
    for sizes in SEQUENCES:
        for worker in lab.workers:
            toggle = lab.plan.toggle(5 if max(sizes) <= 10 else 16)
            config = lab.plan.config(worker, toggle=toggle, max_running_requests=17)
            yield f"batch sizes {', '.join(map(str, sizes))}", Program.from_batch_sizes(config, sizes)
