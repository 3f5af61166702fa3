"""The second stage: the story's sequence, and speculation off where it should be, and on where it should be."""

from collections.abc import Sequence

from harness.isolation.ran import Ran
from harness.program import Program
from harness.validation.ending import Ending
from harness.validation.lab import Lab
from harness.validation.stage import Stage

NAME = "main job"
OUT_OF_REACH = 4
"""Times the ordinary threshold: one that the largest batch doesn't reach, nor once it is padded."""


def main_job(lab: Lab) -> Stage:
    """Batch sizes below, far above and below the threshold again, and the same with a threshold out of reach."""
    ending = Ending(lab, NAME)
    sizes = sizes_across(lab.plan.threshold)
    toggles = [lab.plan.toggle(threshold) for threshold in (lab.plan.threshold, OUT_OF_REACH * lab.plan.threshold)]
    configs = [lab.plan.config(worker, toggle=toggle) for toggle in toggles for worker in lab.workers]
    programs = [Program.from_batch_sizes(config, sizes) for config in configs]
    doubts: list[str] = []
    for ran in lab.side_by_side(lambda program: lab.run(program, keep_trace=True), programs):
        if ran is None:
            continue
        config = ran.program.config
        assert config.toggle is not None
        what = f"batch sizes {_listed(sizes)}, worker {config.worker}"
        if ran.outcome.kind != "passes":
            return ending.failed(ran, what)
        seen, right = speculates(ran, sizes), [size <= config.toggle.threshold for size in sizes]
        if seen[sizes.index(max(sizes))] and not all(seen):
            return ending.wrong(f"{what}: speculation is on above the threshold and off below: {_said(sizes, seen)}")
        if seen != right or (all(right) and any(step.plain for step in ran.trace.decode_steps())):
            doubts.append(f"worker {config.worker}, threshold {config.toggle.threshold}: {_said(sizes, seen)}")
    if doubts:
        return ending.unproven(
            f"{'; '.join(doubts)}. Does the patch take its threshold from {lab.plan.threshold_setting}, when a "
            "scheduler starts? For a patch of one worker alone give --worker"
        )
    return ending.passed(f"batch sizes {_listed(sizes)} with worker {' and '.join(lab.workers)}: all checks pass")


def sizes_across(threshold: int) -> tuple[int, ...]:
    """1, 10, 3 at the story's threshold of 5."""
    return 1, 2 * threshold, max(1, threshold - 2)


def speculates(ran: Ran, sizes: Sequence[int]) -> list[bool]:
    """Whether the last decode step at each size was a spec step; at a size that comes twice, of both."""
    last = {step.batch_size: step.spec for step in ran.trace.decode_steps()}
    return [last.get(size, False) for size in sizes]


def _said(sizes: Sequence[int], seen: Sequence[bool]) -> str:
    return ", ".join(f"{'spec' if spec else 'plain'} at {size}" for size, spec in zip(sizes, seen, strict=True))


def _listed(sizes: Sequence[int]) -> str:
    return ", ".join(map(str, sizes))
