"""What each operation of a program makes the scheduler do."""

from collections.abc import Callable

import pytest

from harness.configuration import EngineConfig, ModelPair, Worker
from harness.engine.engine import Engine
from harness.engine.errors import EngineError
from harness.errors import UsageError
from harness.limits import kv_tokens_needed
from harness.models import BUILT_IN
from harness.oracle import answers_of, closed_form, judge, plain_program
from harness.program import Abort, Drain, Flush, Operation, Program, Retract, Step, Submit
from harness.prompts import Prompt
from harness.trace import Trace
from tests.support.answers import right_answers

V1 = EngineConfig()
V2 = EngineConfig(worker=Worker.V2)
BOTH = pytest.mark.parametrize(
    "config",
    [
        pytest.param(V1, id="v1", marks=pytest.mark.xdist_group("v1-graphs-float32")),
        pytest.param(V2, id="V2", marks=pytest.mark.xdist_group("V2-graphs-float32")),
    ],
)
Boot = Callable[[EngineConfig], Engine]


def run(boot: Boot, config: EngineConfig, *operations: Operation) -> Trace:
    program = Program(config=config, operations=operations)
    trace = boot(config).run(program)
    assert judge(trace, right_answers(program)) == []
    return trace


@BOTH
def test_retract_sends_a_request_back_to_the_queue(boot: Boot, config: EngineConfig) -> None:
    trace = run(boot, config, Submit(count=3, max_new_tokens=30), Step(count=3), Retract(), Drain())
    assert sum(request.retractions for request in trace.requests) == 1
    assert len([step for step in trace.steps if step.forward_mode == "EXTEND"]) == 2


@BOTH
def test_kv_exhaustion_retracts(boot: Boot, config: EngineConfig) -> None:
    scarce = config.model_copy(update={"kv_tokens": 160})
    trace = run(boot, scarce, Submit(count=8, max_new_tokens=40), Drain())
    assert sum(request.retractions for request in trace.requests) > 0


@BOTH
def test_abort_ends_a_request_one_step_later(boot: Boot, config: EngineConfig) -> None:
    submit = Submit(count=3, max_new_tokens=40)
    trace = run(boot, config, submit, Step(count=3), Abort(request=1), Step(count=3), Drain())
    assert trace.requests[1].finish_reason == "abort"
    assert 1 not in trace.steps[4].requests
    assert {0, 2} <= set(trace.steps[4].requests)


@BOTH
def test_flush_is_granted_only_when_idle(boot: Boot, config: EngineConfig) -> None:
    trace = run(boot, config, Submit(max_new_tokens=30), Step(count=2), Flush(), Step(), Drain(), Flush(), Step())
    assert trace.flushes == [False, True]


@BOTH
def test_a_second_submission_finds_its_prefix_cached(boot: Boot, config: EngineConfig) -> None:
    submit = Submit(prompt=Prompt(period=20, seed=3, length=40), max_new_tokens=4)
    trace = run(boot, config, submit, Drain(), submit, Drain())
    first, second = (step.tokens_in for step in trace.steps if step.forward_mode == "EXTEND")
    assert first == 40
    assert second < 10


def test_chunked_prefill(boot: Boot) -> None:
    config = V1.model_copy(update={"chunked_prefill_size": 16})
    trace = run(boot, config, Submit(count=2, prompt=Prompt(period=30, seed=0, length=40), max_new_tokens=9), Drain())
    chunks = [step.tokens_in for step in trace.steps if step.forward_mode == "EXTEND"]
    assert max(chunks) == 16
    assert sum(chunks) >= 80


def test_a_long_prefill_in_small_chunks_is_no_stall(boot: Boot) -> None:
    config = V1.model_copy(update={"chunked_prefill_size": 2})
    run(boot, config, Submit(prompt=Prompt(period=100, seed=0, length=200), max_new_tokens=3), Drain())


def test_a_request_ends_at_the_context_limit(boot: Boot) -> None:
    config = V1.model_copy(update={"context_length": 64})
    trace = run(boot, config, Submit(max_new_tokens=400), Drain())
    assert len(trace.requests[0].output) == 64 - 2 - 9
    assert trace.requests[0].finish_reason == "length"


@pytest.mark.xdist_group("v1-graphs-float32")
def test_abort_of_a_request_that_was_never_submitted(boot: Boot) -> None:
    with pytest.raises(UsageError, match="abort of request 7: only 1 were submitted"):
        run(boot, V1, Submit(), Abort(request=7))


def test_the_smallest_kv_pool_that_is_admitted_is_enough(boot: Boot) -> None:
    for page_size in (1, 16):
        config = EngineConfig(worker=Worker.NONE, page_size=page_size, graphs=())
        submit = Submit(prompt=Prompt(period=98, seed=0, length=100), max_new_tokens=20)
        least = kv_tokens_needed(config, submit, prompt_length=100)
        run(boot, config.model_copy(update={"kv_tokens": least}), submit, Drain())


@pytest.mark.xdist_group("v1-graphs-float32")
def test_a_token_id_that_the_target_does_not_have(boot: Boot) -> None:
    with pytest.raises(UsageError, match="token id 300 in a prompt: the target's vocabulary ends at 255"):
        boot(V1).run(Program(config=V1, operations=(Submit(prompt=(3, 300)),)))


@pytest.mark.xdist_group("v1-graphs-float32")
def test_a_program_without_a_drain_is_judged_as_far_as_it_got(boot: Boot) -> None:
    trace = run(boot, V1, Submit(max_new_tokens=40), Step(count=2))
    assert not trace.idle
    assert trace.requests[0].finish_reason is None


@pytest.mark.xdist_group("v1-graphs-float32")
def test_the_engine_goes_on_after_the_scheduler_raised(boot: Boot) -> None:
    engine = boot(V1)
    program = Program(config=V1, operations=(Submit(count=2, max_new_tokens=20), Drain()))

    def fail(*_: object) -> None:
        raise FloatingPointError("as a patch under test might")

    engine.reset()
    engine.watch()
    engine.execute(program.operations[0])
    engine.execute(Step(count=2))
    engine._session.scheduler.get_next_batch_to_run = fail
    with pytest.raises(FloatingPointError):
        engine.execute(Step())
    del engine._session.scheduler.get_next_batch_to_run
    with pytest.raises(RuntimeError, match="reset the engine"):
        engine.execute(Step())

    assert judge(engine.run(program), right_answers(program)) == []


def test_another_pair_is_judged_by_a_plain_run(boot: Boot) -> None:
    config = V1.model_copy(update={"models": ModelPair(target=BUILT_IN.target, draft=BUILT_IN.draft)})
    tokens = Prompt(period=9, seed=1, length=14).tokens()
    program = Program(config=config, operations=(Submit(count=2, prompt=tokens, max_new_tokens=12), Drain()))
    assert closed_form(program) is None
    trace = boot(config).run(program)
    plain = plain_program(program)
    assert judge(trace, answers_of(program, boot(plain.config).run(plain))) == []


@pytest.mark.xdist_group("v1-graphs-float32")
def test_a_program_of_another_configuration_is_refused(boot: Boot) -> None:
    with pytest.raises(UsageError, match="boot an engine from"):
        boot(V1).run(Program(config=V2))
    assert not issubclass(UsageError, EngineError)
