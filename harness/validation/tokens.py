"""The stage of differential runs: the patched engine, a plain one and an always-spec one, token by token."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count
from time import monotonic

from harness.configuration import EngineConfig, Worker
from harness.isolation.ran import Ran
from harness.oracle import answers_of, judge, plain_program
from harness.outcome import Outcome
from harness.program import Program
from harness.search.grid import grid
from harness.search.sampling import program_of
from harness.search.upstream import spoils
from harness.validation.ending import Ending
from harness.validation.lab import Lab
from harness.validation.plan import Plan
from harness.validation.stage import Stage

NAME = "same tokens"
CONFIGURATIONS_EACH = 3
"""Of each worker, the first of the grid; a search takes the others."""
IN_A_ROW = 3
"""Programs of one configuration: each needs three engines, which are warm for the next ones."""


def same_tokens(lab: Lab) -> Stage:
    """Random programs, each on three engines, for as long as there is time."""
    ending = Ending(lab, NAME)
    until = monotonic() + lab.plan.profile.budget.tokens
    compared = requests = 0
    for ran in lab.side_by_side(lambda program: compare(lab, program), _programs(lab), until):
        if ran is None:
            continue
        if ran.outcome.kind != "passes":
            return ending.failed(ran, "a random program")
        compared += 1
        requests += len(ran.trace.requests)
    if not compared:
        return ending.unproven("no program could be compared")
    return ending.passed(f"{requests} requests of {compared} random programs, on a plain and an always-spec engine too")


def compare(lab: Lab, program: Program) -> Ran | None:
    """The first of the three runs that fails; the patched one where none does, None where SGLang refuses.

    An engine without a threshold that decodes plainly fails, too: it would be no reference, and must not.
    """
    patched = lab.run(program, keep_trace=True)
    if patched is None or patched.outcome.kind != "passes":
        return patched
    references = {"a plain engine": plain_program(program), "an always-spec engine": always_spec(program)}
    for other, reference in references.items():
        ran = lab.run(reference, keep_trace=True)
        if ran is None:
            return None
        if ran.outcome.kind != "passes":
            return ran
        plain = next((step for step in ran.trace.decode_steps() if step.plain), None)
        if reference.config.speculative and plain is not None:
            said = f"a plain step of {plain.batch_size} requests, and no threshold is set"
            return replace(ran, outcome=Outcome(kind="fails", step=plain.index, text=said))
        wrong = judge(patched.trace, answers_of(program, ran.trace))
        if wrong:
            said = f"request {wrong[0].request}: {wrong[0].message}, by {other}"
            return replace(patched, outcome=Outcome(kind="fails", step=len(patched.trace.steps) - 1, text=said))
    return patched


def always_spec(program: Program) -> Program:
    """The same requests without a toggle."""
    return plain_program(program).model_copy(update={"config": program.config.untoggled})


def grid_of(plan: Plan, worker: Worker | None) -> Sequence[EngineConfig]:
    """The configurations that a search would take, of one worker or, in turn, of both."""
    return grid(worker, plan.patch, plan.threshold_setting, plan.strategy)


def _programs(lab: Lab) -> Iterator[Program]:
    """Some of each configuration in turn, the workers' alternately; those that SGLang answers without a toggle, too."""
    of_workers = [grid_of(lab.plan, worker)[:CONFIGURATIONS_EACH] for worker in lab.workers]
    configs = [config for alternatives in zip(*of_workers, strict=True) for config in alternatives]
    for number in count():
        program = program_of(configs[number // IN_A_ROW % len(configs)], lab.plan.seed + number)
        if not any(spoils(program.config.untoggled, submit) for submit in program.submits):
            yield program
