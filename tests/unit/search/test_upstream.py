"""What is kept off programs because SGLang itself answers it wrong, by the cases that show it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.configuration import EngineConfig, Toggle, Worker
from harness.program import Abort, Program, Step, Submit
from harness.search.upstream import outruns_context, outruns_row, safe_steps, spills_indices, spills_mask, stops_late

CASES = Path(__file__).parents[3] / "cases/upstream"
V2 = EngineConfig(worker=Worker.V2)


def case(name: str) -> Program:
    return Program.from_json((CASES / name / "program.json").read_text())


def test_a_stop_in_the_run_that_reaches_the_length_limit() -> None:
    program = case("v2-stop-token-outrun")
    (submit,) = program.submits
    assert stops_late(program.config, submit)
    assert not stops_late(program.config, submit.model_copy(update={"max_new_tokens": 3 + program.config.steps}))
    assert not stops_late(EngineConfig(), submit)


def test_an_abort_that_meets_the_end() -> None:
    program = case("v2-abort-outrun")
    steps = 0
    for operation in program.operations:
        steps += operation.count if isinstance(operation, Step) else 0
        if isinstance(operation, Abort):
            break
    safe = safe_steps(program.config, program.submits[0])
    assert safe is not None
    assert safe < steps
    assert safe_steps(EngineConfig(), program.submits[0]) is None


def test_a_longer_request_may_be_aborted_for_longer_one_that_may_stop_never() -> None:
    assert safe_steps(V2, Submit(max_new_tokens=9)) == 1
    assert safe_steps(V2, Submit(max_new_tokens=17)) == 3
    assert safe_steps(V2, Submit(max_new_tokens=17, ignore_eos=False)) == -1


@pytest.mark.parametrize(
    ("settings", "least"),
    [
        ({"topk": 1, "steps": 7}, 6),
        ({"topk": 8, "steps": 1}, 7),
        ({"topk": 1, "steps": 3}, 2),
        ({}, 14),
        ({"graphs": ()}, 2),
        ({"graphs": (), "steps": 5}, 3),
    ],
)
def test_the_end_of_the_context(settings: dict[str, Any], least: int) -> None:
    """How many tokens short of its context a request must end; two it always does."""
    config = EngineConfig(context_length=64, **settings)
    left = [left for left in range(2, 20) if not outruns_context(config, Submit(max_new_tokens=64 - 9 - left))]
    assert left[0] == least


@pytest.mark.parametrize(
    ("name", "outruns"),
    [
        ("draft-indices-short", outruns_context),
        ("v1-verify-mask-short", outruns_context),
        ("v1-draft-past-row", outruns_row),
        ("v1-draft-pages-past-row", outruns_row),
        ("v2-allocation-past-row", outruns_row),
    ],
)
def test_the_cases_of_the_contexts_end(name: str, outruns: Callable[[EngineConfig, Submit], bool]) -> None:
    program = case(name)
    first, *others = program.submits
    assert outruns(program.config, first)
    assert not any(outruns(program.config, submit) for submit in others)


def test_rows_of_the_request_pool() -> None:
    to_the_end, short = Submit(max_new_tokens=400), Submit(max_new_tokens=20)
    v2 = EngineConfig(worker=Worker.V2, context_length=64)
    outrun = {steps for steps in (1, 3, 7) if outruns_row(EngineConfig(**{**dict(v2), "steps": steps}), to_the_end)}
    assert outrun == {7}
    wide = EngineConfig(steps=7, topk=8, context_length=64)
    assert outruns_row(wide, to_the_end)
    assert not outruns_row(wide, short)
    assert not outruns_row(EngineConfig(context_length=64), to_the_end)


def test_rows_where_each_branch_has_its_own_pages() -> None:
    """At 58 tokens two branches of 7 steps have two pages of 16 each, behind 48 tokens: 112 columns of 108."""
    config = EngineConfig(
        topk=2, steps=7, page_size=16, attention_backend="flashinfer", dtype="bfloat16", context_length=96
    )
    lengths = [9 + new for new in range(20, 80) if not outruns_row(config, Submit(max_new_tokens=new))]
    assert lengths[-1] == 57 + 2


def test_draft_indices_of_all_branches() -> None:
    """Four requests at their end list 4 x (46 + 3) slots for each of four branches: context_length 196 has room."""
    program = case("v1-flashinfer-draft-indices")
    (submit,) = program.submits
    assert spills_indices(program.config, submit)
    for changes in ({"graphs": ()}, {"topk": 1}, {"steps": 1}, {"attention_backend": "triton"}):
        assert not spills_indices(program.config.model_copy(update=changes), submit)
    longer = {length: program.config.model_copy(update={"context_length": length}) for length in range(150, 250)}
    room = [length for length, config in longer.items() if not spills_indices(config, submit)]
    assert room[0] == 4 * (46 + 3)


def test_a_mask_for_more_requests_than_are_captured() -> None:
    program = case("v2-eager-mask")
    (submit,) = program.submits
    assert spills_mask(program.config, submit)
    assert not spills_mask(program.config, Submit())
    for changes in ({"graphs": ()}, {"graphs": (1, 2)}, {"toggle": Toggle(threshold=1)}):
        assert not spills_mask(program.config.model_copy(update=changes), submit)
    assert not spills_mask(EngineConfig(graphs=(1,), context_length=64), submit)
