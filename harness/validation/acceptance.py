"""The stage of acceptance: after a plain stretch a draft is as good as one that was never switched off."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import mean

from harness.checks.draft import acceptance_of
from harness.configuration import EngineConfig
from harness.isolation.ran import Ran
from harness.oracle import accepted
from harness.program import Drain, Operation, Program, Step, Submit
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
STRETCHES = 3
BETWEEN, AFTER = 4, 48
"""Spec steps before each stretch, and tokens at least after the last."""
LEAST_SHARE = 0.99
"""Of an always-spec engine's mean acceptance."""


def acceptance(lab: Lab) -> Stage:
    """Compare what each spec step after a stretch accepts with an always-spec run of the same requests."""
    ending = Ending(lab, NAME)
    stretch = STRETCH[lab.plan.profile]
    figures: list[tuple[str, str]] = []
    programs = [program(config, stretch) for config in _configs(lab, stretch)]
    for patched, always in lab.side_by_side(lambda one: (_run(lab, one), _run(lab, _reference(one))), programs):
        if patched is None or always is None:
            continue
        for ran in (patched, always):
            if ran.outcome.kind != "passes":
                return ending.failed(ran, f"plain stretches of {stretch} steps")
        config = patched.program.config
        what = f"worker {config.worker}, {'graphs' if config.graphs else 'no graphs'}"
        seen = _compared(patched, always)
        if seen is None:
            return ending.unproven(f"{what}: no spec step after a plain stretch of {stretch} steps", *figures)
        figures.append((what, seen.said))
        if seen.mean < LEAST_SHARE * seen.right:
            return ending.wrong(f"{what}: after {stretch} plain steps less is accepted", *figures)
    if not figures:
        return ending.unproven("no program could be compared")
    return ending.passed(f"after {stretch} plain steps spec steps accept what an always-spec engine's do", *figures)


@dataclass(frozen=True, slots=True)
class _Compared:
    """Draft tokens that a step accepts on average, and that it must."""

    mean: float
    right: float
    said: str


def _compared(patched: Ran, always: Ran) -> _Compared | None:
    """None where there is nothing to compare.

    With graphs SGLang's own draft extend spoils the steps after a spec step (cases/upstream), in an always-spec engine
    all of them, so that the closed form stands in for it.
    """
    if patched.program.config.graphs:
        pairs = pairs_of(patched.trace, partial(_closed_form, patched.program), first_only=True)
        which, whose = "the first step after each stretch", "the closed form"
    else:
        pairs = pairs_of(patched.trace, acceptance_of(always.trace).get, first_only=False)
        which, whose = "a step after a stretch", "always-spec"
    if not pairs:
        return None
    seen, right = mean(one for one, _ in pairs), mean(other for _, other in pairs)
    return _Compared(seen, right, f"{which} accepts {seen:.3f} draft tokens, {whose} {right:.3f} ({len(pairs)} steps)")


def program(config: EngineConfig, stretch: int) -> Program:
    """Two requests; for `stretch` steps three more are with them, so that these steps are plain; three times."""
    length = STRETCHES * (stretch + (BETWEEN + 2) * (config.steps + 1)) + AFTER
    few = Submit(count=FEW, prompt=Prompt(period=9, seed=0, length=12), max_new_tokens=length)
    operations: list[Operation] = [few, Step(count=BETWEEN)]
    for number in range(STRETCHES):
        prompt = Prompt(period=14, seed=number * MANY, length=17)
        operations += [Submit(count=MANY, prompt=prompt, max_new_tokens=stretch), Step(count=stretch + BETWEEN)]
    return Program(config=config, operations=(*operations, Drain()))


def pairs_of(
    trace: Trace, reference: Callable[[tuple[int, int]], int | None], first_only: bool
) -> list[tuple[int, int]]:
    """What spec steps accepted once a request had a plain step, and what the reference did at the same places.

    A place is a request and the tokens that it had produced; `first_only` leaves out what follows a spec step.
    """
    after_plain = _after_plain(trace, first_only)
    pairs = []
    for one in trace.accepted():
        right = reference((one.request, one.produced)) if (one.step, one.request) in after_plain else None
        if right is not None:
            pairs.append((one.count, right))
    return pairs


def _closed_form(of: Program, place: tuple[int, int]) -> int:
    request, produced = place
    prompts = [prompt for submit in of.submits for prompt in submit.family()]
    return accepted(prompts[request], produced, of.config.steps)


def _after_plain(trace: Trace, first_only: bool) -> set[tuple[int, int]]:
    """Spec steps, each with a request of its batch that had a plain step before, or that had one last."""
    plain: set[int] = set()
    found = set()
    for step in trace.decode_steps():
        if not step.spec:
            plain |= set(step.requests)
            continue
        found |= {(step.index, request) for request in step.requests if request in plain}
        if first_only:
            plain -= set(step.requests)
    return found


def _configs(lab: Lab, stretch: int) -> list[EngineConfig]:
    length = max(512, STRETCHES * (stretch + 64) + 128)
    changes = {"toggle": lab.plan.toggle(FEW), "context_length": length, "kv_tokens": 8 * length}
    return [
        lab.plan.config(worker, **changes, **graphs)
        for worker in lab.workers
        for graphs in ({"graphs": ()}, {"graphs": (1, 2, 4, 8)})
    ]


def _reference(patched: Program) -> Program:
    return patched.model_copy(update={"config": patched.config.untoggled})


def _run(lab: Lab, one: Program) -> Ran | None:
    return lab.run(one, keep_trace=True)
