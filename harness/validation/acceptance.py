"""The stage of acceptance: after a plain stretch a draft is as good as one that was never switched off."""

from statistics import mean

from harness.checks.draft import Acceptance, acceptance_of
from harness.configuration import EngineConfig, Toggle
from harness.isolation.ran import Ran
from harness.patches.stack import without_worker
from harness.program import Drain, Program, Step, Submit
from harness.prompts import Prompt
from harness.trace import Trace
from harness.validation.ending import Ending
from harness.validation.lab import Lab
from harness.validation.profile import Profile
from harness.validation.stage import Stage

NAME = "acceptance"
STRETCH = {Profile.QUICK: 32, Profile.STANDARD: 128, Profile.RELEASE: 256}
"""Plain steps in a row."""
FEW, MANY = 2, 3
"""Requests that are there throughout, and those that come on top for the plain stretch."""
BEFORE, AFTER = 4, 48
"""Steps, and tokens at least, before and after it."""
LEAST_SHARE = 0.99
"""Of an always-spec engine's mean acceptance."""


def acceptance(lab: Lab) -> Stage:
    """Compare what each spec step after the stretch accepts with an always-spec run of the same requests."""
    ending = Ending(lab, NAME)
    stretch = STRETCH[lab.plan.profile]
    figures: list[tuple[str, str]] = []
    programs = [program(config, stretch) for config in _configs(lab, stretch)]
    for patched, always in lab.side_by_side(lambda one: (_run(lab, one), _run(lab, _reference(one))), programs, INF):
        if patched is None or always is None:
            continue
        for ran in (patched, always):
            if ran.outcome.kind != "passes":
                return ending.failed(ran, f"a plain stretch of {stretch} steps")
        config = patched.program.config
        what = f"worker {config.worker}, {'graphs' if config.graphs else 'no graphs'}"
        after, reference = compared(patched.trace, acceptance_of(always.trace))
        if not after:
            return ending.unproven(f"{what}: no spec step after a plain stretch of {stretch} steps", *figures)
        figures.append((what, f"{mean(after):.3f} draft tokens a step, always-spec {mean(reference):.3f}"))
        if mean(after) < LEAST_SHARE * mean(reference):
            return ending.wrong(f"{what}: after {stretch} plain steps less is accepted", *figures)
    if not figures:
        return ending.unproven("no program could be compared")
    return ending.passed(f"after {stretch} plain steps spec steps accept what an always-spec engine's do", *figures)


INF = float("inf")


def program(config: EngineConfig, stretch: int) -> Program:
    """Two requests; for `stretch` steps three more are with them, so that these steps are plain."""
    few = Submit(count=FEW, prompt=Prompt(period=9, seed=0, length=12), max_new_tokens=BEFORE * 4 + stretch + AFTER)
    many = Submit(count=MANY, prompt=Prompt(period=14, seed=0, length=17), max_new_tokens=stretch)
    return Program(config=config, operations=(few, Step(count=BEFORE), many, Drain()))


def compared(trace: Trace, reference: Acceptance) -> tuple[list[int], list[int]]:
    """What spec steps accepted after a plain step of the same request, and what the reference did at these places."""
    pairs = []
    plain: set[int] = set()
    steps = {step.index: step for step in trace.steps}
    seen_until = -1
    for accepted in trace.accepted():
        for index in range(seen_until + 1, accepted.step):
            if steps[index].forward_mode == "DECODE":
                plain |= set(steps[index].requests)
        seen_until = accepted.step - 1
        key = accepted.request, accepted.produced
        if accepted.request in plain and key in reference:
            pairs.append((accepted.count, reference[key]))
    return [count for count, _ in pairs], [count for _, count in pairs]


def _configs(lab: Lab, stretch: int) -> list[EngineConfig]:
    length = max(512, 2 * stretch + 128)
    changes = {"toggle": Toggle(threshold=FEW), "context_length": length, "kv_tokens": 8 * length}
    return [
        lab.plan.config(worker, **changes, **graphs)
        for worker in lab.workers
        for graphs in ({"graphs": ()}, {"graphs": (1, 2, 4, 8)})
    ]


def _reference(patched: Program) -> Program:
    changes = {"toggle": None, "patch": without_worker(patched.config.patch)}
    return patched.model_copy(update={"config": patched.config.model_copy(update=changes)})


def _run(lab: Lab, one: Program) -> Ran | None:
    return lab.run(one, keep_trace=True)
