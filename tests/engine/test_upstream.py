"""SGLang's own bugs in `cases/upstream` still show as they are written down; one that is mended fails here."""

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.configuration import EngineConfig
from harness.engine.engine import Engine
from harness.oracle import judge
from harness.program import Program
from tests.support.acceptance import compare_acceptance
from tests.support.answers import right_answers

UPSTREAM = Path(__file__).parents[2] / "cases/upstream"
Boot = Callable[[EngineConfig], Engine]


def program_of(case: str) -> Program:
    return Program.from_json((UPSTREAM / case / "program.json").read_text())


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("v2-stop-token-outrun", "3 tokens, must end after 2 (stop)"),
        ("v2-abort-outrun", "4 tokens, must end after 2 (length)"),
    ],
)
def test_v2_outruns_an_end(boot: Boot, case: str, message: str) -> None:
    program = program_of(case)
    wrong = judge(boot(program.config).run(program), right_answers(program))
    assert [found.message for found in wrong] == [message]


def test_v1_drafts_past_a_row(boot: Boot) -> None:
    program = program_of("v1-draft-past-row")
    wrong = judge(boot(program.config).run(program), right_answers(program))
    assert [found.request for found in wrong] == [1]
    assert wrong[0].message.startswith("output token 1 is ")


def test_v2_leaks_a_slot_at_the_end_of_the_context(boot: Boot) -> None:
    program = program_of("v2-allocation-past-row")
    engine = boot(program.config)
    with pytest.raises(ValueError, match="pool memory leak detected!"):
        engine.run(program)
    assert judge(engine.trace, right_answers(program)) == []


def test_a_chunked_prefill_costs_acceptance(boot: Boot) -> None:
    program = program_of("draft-chunk-end")
    whole = program.model_copy(update={"config": program.config.model_copy(update={"chunked_prefill_size": None})})
    less = []
    for chunked in (program, whole):
        trace = boot(chunked.config).run(chunked)
        assert judge(trace, right_answers(chunked)) == []
        less.append([row for row in compare_acceptance(chunked, trace) if row.seen < row.expected])
    assert len(less[0]) >= 1
    assert less[1] == []


@pytest.mark.parametrize(("case", "request_number"), [("v1-draft-extend-graph", 1), ("v2-draft-extend-graph", 1)])
def test_draft_extend_in_a_graph_costs_acceptance(boot: Boot, case: str, request_number: int) -> None:
    program = program_of(case)
    trace = boot(program.config).run(program)
    assert judge(trace, right_answers(program)) == []
    less = [row for row in compare_acceptance(program, trace) if row.seen != row.expected]
    assert {row.request for row in less} == {request_number}
    assert all(row.seen < row.expected for row in less)

    eager = program.model_copy(update={"config": program.config.model_copy(update={"graphs": ()})})
    trace = boot(eager.config).run(eager)
    assert [row for row in compare_acceptance(eager, trace) if row.seen != row.expected] == []
