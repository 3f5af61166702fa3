"""Strategy plain: nothing is drafted while speculation is off, and afterwards it is as if it had never been off."""

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, NamedTuple

import pytest

from harness.checks import Checks
from harness.configuration import EngineConfig, Toggle
from harness.engine.device import Device
from harness.engine.engine import Engine
from harness.engine.v0_5_12.buffers import model_runners
from harness.oracle import judge
from harness.program import Abort, Drain, Operation, Program, Retract, Step, Submit
from harness.prompts import Prompt
from harness.trace import Trace
from tests.support.acceptance import compare_acceptance
from tests.support.answers import right_answers
from tests.support.engines import Engines

Boot = Callable[[EngineConfig], Engine]
THRESHOLD = 3
LONG = Prompt(period=30, seed=7, length=33)


def configs(kept_tokens: int | None = None, **settings: Any) -> list[object]:
    """Without graphs, so that every forward of the draft can be seen, and every accepted length is SGLang's best."""
    toggle = Toggle(threshold=THRESHOLD, strategy="plain", kept_tokens=kept_tokens)
    return [
        pytest.param(
            EngineConfig(worker=worker, graphs=(), toggle=toggle, **settings),
            id=worker,
            marks=pytest.mark.xdist_group(f"plain-{worker}-{kept_tokens}-{settings}"),
        )
        for worker in ("v1", "v2")
    ]


def slow(params: list[Any]) -> list[object]:
    return [pytest.param(*param.values, id=param.id, marks=[*param.marks, pytest.mark.slow]) for param in params]


def crossing(stretch: int, after: int = 12) -> tuple[Operation, ...]:
    """Two requests run on while four more join for about `stretch` plain steps."""
    few = Submit(count=2, prompt=LONG, max_new_tokens=stretch + after + 20)
    more = Submit(count=4, prompt=Prompt(period=9, seed=0, length=12), max_new_tokens=stretch)
    return few, Step(count=4), more, Drain()


def run(engine: Engine, *operations: Operation) -> Trace:
    """With all checks on."""
    program = Program(config=engine.config, operations=operations)
    trace = engine.run(program, checks=Checks(program))
    assert judge(trace, right_answers(program)) == []
    compared = compare_acceptance(program, trace)
    assert [case for case in compared if case.seen != case.expected] == []
    return trace


class Drafted(NamedTuple):
    """One forward of the draft."""

    step: int
    mode: str
    tokens: int


@contextmanager
def seen_drafting(engine: Engine) -> Iterator[list[Drafted]]:
    """Every forward of the draft from here on."""
    engine.reset()
    runner = model_runners(engine._session.scheduler)[1]
    seen: list[Drafted] = []

    def forward(batch: Any, *args: Any, **kwargs: Any) -> Any:
        seen.append(Drafted(len(engine.trace.steps) - 1, batch.forward_mode.name, len(batch.input_ids)))
        return type(runner).forward(runner, batch, *args, **kwargs)

    runner.forward = forward
    try:
        yield seen
    finally:
        del runner.forward


def resumed(trace: Trace) -> list[int]:
    """Spec steps after a plain stretch."""
    return [after.index for before, after in pairwise(trace.decode_steps()) if before.plain and after.spec]


def plain_steps(trace: Trace) -> set[int]:
    return {step.index for step in trace.decode_steps() if step.plain}


@pytest.mark.parametrize("config", configs())
def test_one_extend_when_speculation_comes_back_and_nothing_before(boot: Boot, config: EngineConfig) -> None:
    engine = boot(config)
    with seen_drafting(engine) as seen:
        trace = run(engine, *crossing(stretch=20))
    plain, (first,) = plain_steps(trace), resumed(trace)
    assert len(plain) >= 18
    assert [drafted for drafted in seen if drafted.step in plain] == []
    extends = [drafted.tokens for drafted in seen if drafted.step == first and drafted.mode == "EXTEND"]
    assert extends == [2 * len(plain)]


@pytest.mark.parametrize("config", configs(chunked_prefill_size=16))
def test_a_long_catch_up_is_cut(boot: Boot, config: EngineConfig) -> None:
    """As a prefill of as many tokens would be; the prompts here are cut as well, and SGLang drafts their ends wrong."""
    engine = boot(config)
    program = Program(config=config, operations=crossing(stretch=30))
    with seen_drafting(engine) as seen:
        trace = engine.run(program, checks=Checks(program))
    assert judge(trace, right_answers(program)) == []
    first = resumed(trace)[-1]
    extends = [drafted.tokens for drafted in seen if drafted.step == first and drafted.mode == "EXTEND"]
    assert len(extends) > 2
    assert set(extends[:-1]) == {16}
    assert extends[-1] <= 16


@pytest.mark.parametrize("config", configs())
def test_a_catch_up_that_is_padded(boot: Boot, config: EngineConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `--enable-attn-tp-input-scattered` has SGLang do with all prefills, to a multiple of the ranks."""
    engine, padded = boot(config), []

    def pad(batch: Any, runner: Any) -> None:
        if runner.is_draft_worker and batch.forward_mode.name == "EXTEND":
            padded.append(len(batch.input_ids))
            batch._pad_inputs_to_size(runner, len(batch.input_ids) + 3, batch.batch_size)

    forward_batch = importlib.import_module("sglang.srt.model_executor.forward_batch_info").ForwardBatch
    monkeypatch.setattr(forward_batch, "prepare_attn_tp_scatter_input", pad)
    trace = run(engine, *crossing(stretch=20))
    assert padded[-1] == 2 * len(plain_steps(trace))


@pytest.mark.parametrize("config", configs(kept_tokens=4))
def test_a_plain_stretch_longer_than_what_is_kept(boot: Boot, config: EngineConfig) -> None:
    """All are caught up whenever one request has as many plain steps as are kept, and at no other plain step."""
    engine = boot(config)
    with seen_drafting(engine) as seen:
        trace = run(engine, *crossing(stretch=18))
    plain, (first,) = sorted(plain_steps(trace)), resumed(trace)
    drafted = {each.step: each.tokens for each in seen if each.step in plain}
    assert list(drafted) == plain[3::4]
    assert set(drafted.values()) == {4 * 6}
    extends = [each.tokens for each in seen if each.step == first and each.mode == "EXTEND"]
    assert extends == ([2 * (len(plain) % 4)] if len(plain) % 4 else [])


@pytest.mark.parametrize("config", [*configs(), *slow(configs(kept_tokens=300))])
def test_acceptance_after_256_plain_steps(boot: Boot, config: EngineConfig) -> None:
    """Kept in parts, and as a whole: every later spec step accepts exactly what the closed form says."""
    trace = run(boot(config), *crossing(stretch=260, after=60))
    assert len(plain_steps(trace)) >= 256
    assert sum(sum(step.accepted or ()) for step in trace.steps[resumed(trace)[0] :]) > 30


@pytest.mark.parametrize("config", [*configs(), *configs(page_size=4, topk=1)])
def test_a_prefix_of_a_request_that_ended_while_it_lagged(boot: Boot, config: EngineConfig) -> None:
    """The newcomer finds what was drafted of it, no more, and accepts all that it should."""
    ended, output = Prompt(period=12, seed=3, length=15), 14
    newcomer = Submit(prompt=Prompt(period=12, seed=3, length=15 + output + 4), max_new_tokens=50)
    others = Submit(count=4, prompt=LONG, max_new_tokens=40)
    trace = run(
        boot(config), others, Submit(prompt=ended, max_new_tokens=output), Step(count=output + 4), newcomer, Drain()
    )
    assert trace.requests[4].finish_reason == "length"
    prefill = next(step for step in trace.steps if step.requests == (5,))
    # Keys are pairs of tokens, and of whole pages: of 15 drafted positions 14 are found, or 12.
    assert prefill.tokens_in == 15 + output + 4 - 14 // config.page_size * config.page_size
    assert any(step.spec and 5 in step.requests for step in trace.steps)


@pytest.mark.parametrize("config", configs())
def test_retracted_and_aborted_while_they_lag(boot: Boot, config: EngineConfig) -> None:
    """The retracted one comes back by a prefill, during the plain stretch, and lags anew."""
    trace = run(
        boot(config),
        Submit(count=6, prompt=LONG, max_new_tokens=40),
        Step(count=7),
        Retract(),
        Step(count=6),
        Abort(request=1),
        Abort(request=2),
        Abort(request=4),
        Drain(),
    )
    assert sum(request.retractions for request in trace.requests) == 1
    assert [request.finish_reason for request in trace.requests].count("abort") == 3
    assert trace.switches[1] == 1
    assert sum(sum(step.accepted or ()) for step in trace.steps) > 20


@pytest.mark.parametrize("config", configs())
def test_a_request_that_joins_for_the_last_plain_steps(boot: Boot, config: EngineConfig) -> None:
    """It lags by less than the others, and one that joins with the first spec step not at all."""
    few = Submit(count=2, prompt=LONG, max_new_tokens=60)
    more = Submit(count=3, prompt=Prompt(period=9, seed=0, length=12), max_new_tokens=20)
    late = Submit(prompt=Prompt(period=11, seed=5, length=14), max_new_tokens=30)
    engine = boot(config)
    with seen_drafting(engine) as seen:
        trace = run(engine, few, Step(count=3), more, Step(count=17), late, Drain())
    behind = {number: sum(step.plain and number in step.requests for step in trace.steps) for number in (0, 1, 5)}
    first = resumed(trace)[-1]
    assert 0 < behind[5] < behind[0] == behind[1]
    extends = [drafted.tokens for drafted in seen if drafted.step == first and drafted.mode == "EXTEND"]
    assert extends == [sum(behind.values())]


def test_a_start_without_the_hook_is_refused(boot: Engines, device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """SGLang would only log that it couldn't apply it."""
    boot.close()
    config = EngineConfig(graphs=(), toggle=Toggle(threshold=THRESHOLD, strategy="plain"))
    Engine(config, device).close()  # the hook is in by now
    schedule_batch = importlib.import_module("sglang.srt.managers.schedule_batch")
    monkeypatch.setattr(schedule_batch.Req, "_cache_commit_len", lambda request: request.kv_committed_len)
    with pytest.raises(RuntimeError, match="strategy plain isn't installed"):
        Engine(config, device)
