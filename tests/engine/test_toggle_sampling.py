"""What a plain step owes a request besides its greedy token: logprobs, temperature, penalties, grammar."""

from collections.abc import Callable
from typing import Any

import pytest

from harness.configuration import EngineConfig, Toggle, Worker
from harness.engine.engine import Engine
from harness.engine.v0_5_12.requests import number_of
from harness.oracle import judge
from harness.program import Drain, Operation, Program, Step, Submit
from harness.prompts import EOS_TOKEN, Prompt
from harness.trace import Trace
from tests.support.answers import right_answers

THRESHOLD = 3
Boot = Callable[[EngineConfig], Engine]
BOTH = pytest.mark.parametrize(
    "config",
    [
        pytest.param(
            EngineConfig(worker=worker, toggle=Toggle(threshold=THRESHOLD, strategy=strategy)),
            id=f"{worker}-{strategy}",
            marks=[pytest.mark.xdist_group(f"threshold-3-{worker}"), *marks],
        )
        for strategy, marks in (("warm", []), ("plain", [pytest.mark.slow]))
        for worker in ("v1", "v2")
    ],
)
PROMPT = Prompt(period=12, seed=0, length=16)


def crossing(**settings: Any) -> tuple[Operation, ...]:
    """Two requests run on while four more join for a while: spec, plain and spec steps."""
    few = Submit(count=2, prompt=PROMPT, max_new_tokens=40, **settings)
    more = Submit(count=4, prompt=Prompt(period=9, seed=0, length=12), max_new_tokens=8, **settings)
    return few, Step(count=4), more, Drain()


def run(engine: Engine, operations: tuple[Operation, ...]) -> Trace:
    trace = engine.run(Program(config=engine.config, operations=operations))
    if engine.config.toggle is not None:
        assert trace.switches == (1, 1)
    return trace


def plain(config: EngineConfig) -> EngineConfig:
    return config.model_copy(update={"worker": Worker.NONE, "toggle": None})


@BOTH
def test_logprobs_are_those_of_a_plain_engine(boot: Boot, config: EngineConfig) -> None:
    """Of each token, of the likeliest in its place and of named ones."""
    operations = crossing(logprobs=True, top_logprobs=3, token_ids_logprob=(5, 90))
    toggled = run(boot(config), operations)
    expected = run(boot(plain(config)), operations)
    for request, other in zip(toggled.requests, expected.requests, strict=True):
        assert request.output == other.output
        assert len(request.logprobs) == len(request.output)
        assert request.logprobs == pytest.approx(other.logprobs, abs=1e-3)
        assert max(request.logprobs) <= 0
        for seen, right in (
            (request.top_logprobs, other.top_logprobs),
            (request.token_ids_logprobs, other.token_ids_logprobs),
        ):
            assert len(seen) == len(request.output)
            for place, value in enumerate(seen):
                assert value == pytest.approx(right[place], abs=1e-3), place


@BOTH
def test_a_sharp_distribution_gives_the_greedy_answer(boot: Boot, config: EngineConfig) -> None:
    """At temperature 0.5 the right token has all but e-12 of the probability."""
    trace = run(boot(config), crossing(temperature=0.5))
    assert judge(trace, right_answers(Program(config=config, operations=crossing()))) == []


@BOTH
def test_a_flat_distribution_gives_anything_in_plain_steps_too(boot: Boot, config: EngineConfig) -> None:
    flat = Submit(count=6, prompt=PROMPT, max_new_tokens=24, temperature=50.0)
    trace = boot(config).run(Program(config=config, operations=(flat, Drain())))
    assert {step.plain for step in trace.decode_steps() if step.batch_size > THRESHOLD} == {True}
    tokens = {token for request in trace.requests for token in request.output}
    assert len(tokens) > 60
    assert all(0 <= token < 256 for token in tokens)


@BOTH
def test_penalties_in_plain_steps_are_those_of_a_plain_engine(boot: Boot, config: EngineConfig) -> None:
    """The continuation repeats tokens, and a penalty of 2 each time drives it elsewhere."""
    penalised = Submit(count=6, prompt=Prompt(period=4, seed=3, length=40), max_new_tokens=60, frequency_penalty=2.0)
    operations = (penalised, Drain())
    toggled = boot(config).run(Program(config=config, operations=operations))
    assert {step.plain for step in toggled.decode_steps()} == {True}
    expected = boot(plain(config)).run(Program(config=plain(config), operations=operations))
    assert [request.output for request in toggled.requests] == [request.output for request in expected.requests]


@BOTH
def test_penalties_across_the_threshold(boot: Boot, config: EngineConfig) -> None:
    trace = run(boot(config), crossing(frequency_penalty=1.0))
    assert [len(request.output) for request in trace.requests] == [40] * 2 + [8] * 4


@BOTH
def test_a_grammar_binds_in_spec_and_plain_steps(
    boot: Boot, config: EngineConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The right answer, cut at a length of each request's own by an end of sequence that only the grammar wants."""
    from tests.support.grammar import EndsAfter  # imports SGLang

    operations = crossing(ignore_eos=False)
    program = Program(config=config, operations=operations)
    engine = boot(config)

    def bind(request: Any) -> bool:
        request.grammar = EndsAfter(lengths[number_of(request.rid)])
        return False

    answers = [answer.tokens for answer in right_answers(program)]
    lengths = [31, 34, 3, 4, 5, 6]
    engine.reset()
    monkeypatch.setattr(engine._session.scheduler.grammar_manager, "process_req_with_grammar", bind)
    trace = run(engine, operations)
    for request, answer, length in zip(trace.requests, answers, lengths, strict=True):
        assert request.output == [*(answer or ())[:length], EOS_TOKEN]
        assert request.finish_reason == "stop"
    assert {number for step in trace.decode_steps() if step.plain for number in step.requests} == set(range(6))
