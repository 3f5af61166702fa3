"""The domain pass ends at the shortest program that still fails alike, whatever fails it."""

from collections.abc import Callable

import pytest

from harness.configuration import EngineConfig, Toggle
from harness.errors import RefusedConfiguration
from harness.isolation.ran import Ran
from harness.limits import check_program
from harness.outcome import Outcome
from harness.program import Abort, Drain, Flush, Program, Retract, Step, Submit
from harness.prompts import Prompt
from harness.search.shrink import Shortest, domain_pass
from harness.search.simplify import candidates
from harness.search.weight import signature, weight

CONFIG = EngineConfig(page_size=4, topk=1, toggle=Toggle(threshold=5, hysteresis=2), chunked_prefill_size=32)
PROGRAM = Program(
    config=CONFIG,
    operations=(
        Submit(count=4, prompt=Prompt(period=20, seed=3, length=30), max_new_tokens=20, logprobs=True),
        Step(count=3),
        Step(count=2),
        Abort(request=1),
        Submit(count=3, prompt=Prompt(period=9, seed=1, length=12), max_new_tokens=9),
        Retract(),
        Step(count=5),
        Abort(request=5),
        Drain(),
        Flush(),
    ),
)
NEVER = float("inf")


def fails_where(wrong: Callable[[Program], bool]) -> Callable[[Program], Ran]:
    def run(program: Program) -> Ran:
        outcome = Outcome(kind="fails", check="I2-slots", step=1) if wrong(program) else Outcome(kind="passes")
        return Ran(program, outcome, program)

    return run


def shrunk(wrong: Callable[[Program], bool], until: float = NEVER, at_once: int = 1) -> Program:
    shortest, run = Shortest(), fails_where(wrong)
    assert shortest.take(run(PROGRAM))
    domain_pass(shortest, run, until, at_once=at_once)
    assert shortest.ran is not None
    return shortest.ran.program


def test_candidates_can_run_and_are_others() -> None:
    seen = list(candidates(PROGRAM))
    assert len(seen) > 30
    assert PROGRAM not in seen
    for candidate in seen:
        check_program(candidate)


def test_requests_alone() -> None:
    program = shrunk(lambda program: sum(submit.count for submit in program.submits) >= 3)
    assert program.operations == (Submit(count=3, max_new_tokens=1),)
    assert program.config == EngineConfig(topk=1, steps=1, graphs=(), toggle=Toggle(threshold=1))


def test_an_abort_still_names_the_request_that_it_did() -> None:
    def wrong(program: Program) -> bool:
        submitted: list[int] = []
        for operation in program.operations:
            if isinstance(operation, Submit):
                submitted += [operation.prompt.period] * operation.count  # type: ignore[union-attr]
            elif isinstance(operation, Abort) and submitted[operation.request] == 9:
                return True
        return False

    operations = shrunk(wrong).operations
    assert operations == (
        Submit(prompt=Prompt(period=9, seed=0, length=11), max_new_tokens=1),
        Abort(request=0),
    )


def test_what_matters_in_a_configuration_stays() -> None:
    program = shrunk(lambda program: program.config.page_size == 4 and program.config.graphs != ())
    assert program.operations == ()
    assert program.config == EngineConfig(topk=1, steps=1, page_size=4, graphs=(1,), toggle=Toggle(threshold=1))


def test_side_by_side_it_ends_the_same_each_time() -> None:
    def wrong(program: Program) -> bool:
        return sum(submit.count for submit in program.submits) >= 3 and Retract() in program.operations

    several = [shrunk(wrong, at_once=at_once) for at_once in (4, 4, 4)]
    assert several == [shrunk(wrong)] * 3


def test_no_time() -> None:
    assert shrunk(lambda _: True, until=0.0) == PROGRAM


def test_a_refused_configuration_is_no_failure() -> None:
    shortest = Shortest()
    shortest.take(Ran(PROGRAM, Outcome(kind="raises", step=1, text="E"), PROGRAM))

    def run(program: Program) -> Ran:
        raise RefusedConfiguration("no")

    domain_pass(shortest, run, NEVER)
    assert shortest.ran is not None
    assert shortest.ran.program == PROGRAM


def test_another_failure_is_kept_apart() -> None:
    shortest = Shortest()
    shorter = PROGRAM.model_copy(update={"operations": ()})
    assert shortest.take(Ran(PROGRAM, Outcome(kind="fails", check="I2-slots", step=3), PROGRAM))
    assert not shortest.take(Ran(shorter, Outcome(kind="fails", check="I7-graphs", step=1), shorter))
    assert not shortest.take(Ran(shorter, Outcome(kind="passes"), shorter))
    assert shortest.ran is not None
    assert shortest.ran.program == PROGRAM
    assert list(shortest.others) == [("fails", "I7-graphs")]


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        (
            Outcome(kind="raises", step=1, text="a (160) and b (2)"),
            Outcome(kind="raises", text="a (32) and b (1)"),
            True,
        ),
        (Outcome(kind="raises", step=1, text="a (160)"), Outcome(kind="dies", step=1, text="a (160)"), False),
        (Outcome(kind="fails", check="I2-slots", text="x"), Outcome(kind="fails", check="I2-slots", text="y"), True),
        (Outcome(kind="fails", check="I2-slots"), Outcome(kind="fails", check="I3-lengths-v1"), False),
    ],
)
def test_what_fails_alike(one: Outcome, other: Outcome, alike: bool) -> None:
    assert (signature(one) == signature(other)) is alike


def test_fewer_operations_weigh_less_than_anything_else() -> None:
    one = Program(operations=(Submit(count=16, max_new_tokens=99),))
    two = Program(operations=(Submit(max_new_tokens=1), Step()))
    assert weight(one) < weight(two)
