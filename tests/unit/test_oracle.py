"""Answers in closed form, and what counts as wrong."""

import pytest

from harness.configuration import EngineConfig, ModelPair, Worker
from harness.oracle import OPEN, Answer, accepted, answers_of, closed_form, judge, plain_program
from harness.program import Abort, Drain, Program, Step, Submit
from harness.prompts import EOS_TOKEN, Prompt, proposable
from harness.trace import RequestTrace, Trace

PROMPT = Prompt(period=7, seed=0, length=9)
FOLLOWING = PROMPT.sequence(400)[9:]


def answers(config: EngineConfig | None = None, **submit: object) -> list[Answer] | None:
    operations = (Submit(**{"prompt": PROMPT, "max_new_tokens": 6} | submit), Drain())
    return closed_form(Program(config=config or EngineConfig(), operations=operations))


def test_length() -> None:
    assert answers() == [Answer(FOLLOWING[:6], "length")]


def test_the_context_ends_it() -> None:
    assert answers(EngineConfig(context_length=40), max_new_tokens=100) == [Answer(FOLLOWING[: 40 - 2 - 9], "length")]


def test_stop_token() -> None:
    assert answers(stop_token=FOLLOWING[2]) == [Answer(FOLLOWING[:3], "stop")]


def test_a_stop_token_at_the_last_position_ends_by_length() -> None:
    assert answers(stop_token=FOLLOWING[5]) == [Answer(FOLLOWING[:6], "length")]


def test_end_of_sequence() -> None:
    place = FOLLOWING.index(EOS_TOKEN)
    [answer] = answers(max_new_tokens=place + 10, ignore_eos=False) or []
    assert answer == Answer(FOLLOWING[: place + 1], "stop")
    [ignoring] = answers(max_new_tokens=place + 10) or []
    assert len(ignoring.tokens) == place + 10


def test_no_closed_form() -> None:
    assert answers(prompt=(1, 2, 3)) is None
    assert answers(EngineConfig(models=ModelPair(target="/a"))) is None


def test_of_a_sampled_request_only_its_end_is_judged() -> None:
    assert answers(temperature=1.0) == [OPEN]
    for reason, wrong in (("length", 0), ("stop", 0), ("abort", 1), (None, 1)):
        request = RequestTrace(0, (1,), output=[250, 3], finish_reason=reason)
        assert len(judge(Trace(requests=[request], idle=True), [OPEN])) == wrong


def test_answers_of_a_plain_run() -> None:
    program = Program(operations=(Submit(prompt=(1, 2)), Submit(prompt=(1, 2), count=2, temperature=0.7), Drain()))
    requests = [RequestTrace(number, (1, 2), output=[7], finish_reason="length") for number in range(3)]
    assert answers_of(program, Trace(requests=requests)) == [Answer((7,), "length"), OPEN, OPEN]


def test_a_request_that_still_runs_when_the_program_ends_is_judged_as_far_as_it_got() -> None:
    answer = [Answer((5, 6, 7), "length")]
    for output, wrong in (([5, 6], 0), ([5, 9], 1)):
        assert len(judge(Trace(requests=[RequestTrace(0, (1,), output=output)], idle=False), answer)) == wrong


def test_accepted_counts_leading_proposable_tokens() -> None:
    for produced in range(1, 60):
        count = accepted(PROMPT, produced, steps=3)
        assert all(proposable(token) for token in FOLLOWING[produced : produced + count])
        assert count == 3 or not proposable(FOLLOWING[produced + count])


def test_plain_program_keeps_requests_only() -> None:
    program = Program(config=EngineConfig(worker=Worker.V2), operations=(Submit(), Step(), Abort(request=0), Drain()))
    plain = plain_program(program)
    assert plain.operations == (Submit(), Drain())
    assert (plain.config.worker, plain.config.overlap) == (Worker.NONE, False)
    assert Program.from_json(plain.to_json()) == plain


@pytest.mark.parametrize(
    ("output", "reason", "aborted", "message"),
    [
        ([5, 6, 7], "length", False, None),
        ([5, 6], "abort", True, None),
        ([5, 8, 7], "length", False, "output token 1 is 8, must be 6"),
        ([5, 8], "abort", True, "output token 1 is 8, must be 6"),
        ([5, 6], "abort", False, "2 of 3 tokens, then abort"),
        ([5, 6], None, False, "2 of 3 tokens, then nothing"),
        ([5, 6, 7, 8], "length", False, "4 tokens, must end after 3 (length)"),
        ([5, 6, 7, 8], "abort", True, "4 tokens, must end after 3 (length)"),
        ([5, 6, 7], "stop", False, "finished by stop, must be length"),
    ],
)
def test_judge(output: list[int], reason: str | None, aborted: bool, message: str | None) -> None:
    request = RequestTrace(0, (1,), output=output, finish_reason=reason, aborted=aborted)
    wrong = judge(Trace(requests=[request], idle=True), [Answer((5, 6, 7), "length")])
    assert [case.message for case in wrong] == ([message] if message else [])
