"""Programs are values: they print as Python and as versioned JSON, and say what is wrong with a file in one line."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from harness.configuration import EngineConfig, ModelPair, Worker
from harness.errors import MalformedProgram
from harness.program import Abort, Drain, Flush, Program, Retract, Step, Submit
from harness.prompts import Prompt

EVERYTHING = Program(
    config=EngineConfig(
        worker=Worker.V2, steps=7, page_size=4, graphs=(1, 3), chunked_prefill_size=8, models=ModelPair(target="/a/b")
    ),
    operations=(
        Submit(count=3, prompt=Prompt(period=5, seed=9, length=12), max_new_tokens=4, stop_token=17),
        Submit(prompt=(1, 2, 3), ignore_eos=False, temperature=0.5),
        Step(count=2),
        Abort(request=1),
        Retract(),
        Flush(),
        Drain(),
    ),
)


def test_json_round_trip() -> None:
    assert Program.from_json(EVERYTHING.to_json()) == EVERYTHING
    assert json.loads(EVERYTHING.to_json())["version"] == 1


def test_repr_is_valid_python() -> None:
    assert eval(repr(EVERYTHING)) == EVERYTHING
    assert repr(Program(operations=(Submit(), Drain()))) == "Program(operations=(Submit(), Drain()))"


PROMPTS = st.builds(
    lambda period, seed, extra: Prompt(period=period, seed=seed, length=period + extra),
    st.integers(4, 128),
    st.integers(0, 10**6),
    st.integers(2, 60),
)
OPERATIONS = st.one_of(
    st.builds(Submit, count=st.integers(1, 20), prompt=PROMPTS | st.lists(st.integers(0, 255), min_size=1).map(tuple)),
    st.builds(Submit, prompt=PROMPTS, stop_token=st.integers(0, 255), max_new_tokens=st.integers(1, 99)),
    st.builds(Submit, logprobs=st.just(True), token_ids_logprob=st.lists(st.integers(0, 255)).map(tuple)),
    st.builds(Step, count=st.integers(1, 99)),
    st.builds(Abort, request=st.integers(0, 99)),
    st.sampled_from([Retract(), Flush(), Drain()]),
)


@given(st.builds(Program, operations=st.lists(OPERATIONS, max_size=6).map(tuple)))
def test_any_program_survives_json_and_repr(program: Program) -> None:
    assert Program.from_json(program.to_json()) == program
    assert eval(repr(program)) == program


def test_immutable_and_hashable() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        EVERYTHING.operations = ()  # type: ignore[misc]
    assert len({EVERYTHING, Program.from_json(EVERYTHING.to_json())}) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON: Expecting property name"),
        ("[1]", "not a program: expected an object"),
        ('{"version": 2, "program": {}}', "program version 2 isn't 1, the one that this harness reads"),
        ('{"version": 1, "program": ' + "[" * 100_000, "not a program: nested too deeply"),
        ('{"version": 1, "program": {"operation": []}}', "operation: Extra inputs are not permitted"),
        ('{"version": 1, "program": {"operations": [{"op": "stop"}]}}', "operations.0: Input tag 'stop'"),
        (
            '{"version": 1, "program": {"config": {"worker": "v2", "topk": 4}}}',
            "config: worker v2 supports topk 1 only, not 4",
        ),
        (
            '{"version": 1, "program": {"operations": [{"op": "submit", "stop_token": 3, "ignore_eos": true}]}}',
            "operations.0.submit: stop_token and ignore_eos exclude each other",
        ),
        (
            '{"version": 1, "program": {"operations": [{"op": "submit", "top_logprobs": 3}]}}',
            "operations.0.submit: top_logprobs and token_ids_logprob come with logprobs alone",
        ),
        (
            '{"version": 1, "program": {"operations": [{"op": "submit", "prompt": []}]}}',
            "operations.0.submit.prompt",
        ),
    ],
)
def test_malformed(text: str, message: str) -> None:
    with pytest.raises(MalformedProgram) as raised:
        Program.from_json(text)
    assert str(raised.value).startswith(message)
    assert "\n" not in str(raised.value)


def test_a_stop_token_turns_ignore_eos_off() -> None:
    assert Submit().ignore_eos
    assert not Submit(stop_token=3).ignore_eos


def test_each_request_of_a_prompt_has_its_own_seed_and_token_ids_are_shared() -> None:
    prompt = Prompt(period=5, seed=2, length=8)
    assert Submit(count=2, prompt=prompt).prompts() == [prompt.tokens(), Prompt(period=5, seed=3, length=8).tokens()]
    assert Submit(count=2, prompt=(4, 5)).prompts() == [(4, 5), (4, 5)]


def test_batch_sizes_become_operations() -> None:
    program = Program.from_batch_sizes(EngineConfig(), [1, 3, 2, 2], steps_each=2)
    submits = [operation for operation in program.operations if isinstance(operation, Submit)]
    assert [submit.count for submit in submits] == [1, 2]
    assert [operation for operation in program.operations if not isinstance(operation, Submit)] == [
        Step(count=3),
        Step(count=3),
        Abort(request=2),
        Step(count=3),
        Step(count=2),
        Drain(),
    ]
    assert submits[0].prompt != submits[1].prompt


def test_batch_sizes_wait_for_chunked_prefill() -> None:
    config = EngineConfig(chunked_prefill_size=4)
    program = Program.from_batch_sizes(config, [2], steps_each=1)
    assert program.operations[1] == Step(count=1 + 5)  # 2 prompts of 9 tokens, 4 at a time
