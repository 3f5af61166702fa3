"""Programs that an engine can never run to their end are refused before it boots."""

import pytest

from harness.configuration import EngineConfig, Worker
from harness.errors import UsageError
from harness.limits import check_batch_sizes, check_program, kv_tokens_needed
from harness.program import Program, Submit
from harness.prompts import Prompt


def program(config: EngineConfig, **submit: object) -> Program:
    return Program(config=config, operations=(Submit(**submit),))


def test_kv_pool_too_small_names_the_size_that_does() -> None:
    submit = Submit(max_new_tokens=100)
    needed = kv_tokens_needed(EngineConfig(), submit, prompt_length=9)
    with pytest.raises(UsageError, match=f"needs kv_tokens >= {needed}, the configuration has {needed - 1}"):
        check_program(program(EngineConfig(kv_tokens=needed - 1), max_new_tokens=100))
    check_program(program(EngineConfig(kv_tokens=needed), max_new_tokens=100))


def test_pages_and_overlap_need_more() -> None:
    plain, paged = (EngineConfig(worker=Worker.V2, page_size=size) for size in (1, 64))
    submit = Submit(max_new_tokens=10)
    assert kv_tokens_needed(paged, submit, 9) > kv_tokens_needed(plain, submit, 9)
    assert kv_tokens_needed(plain, submit, 9) > kv_tokens_needed(EngineConfig(worker=Worker.NONE), submit, 9)


def test_prompt_longer_than_the_context() -> None:
    with pytest.raises(UsageError, match="a prompt of 60 tokens needs context_length > 66"):
        check_program(program(EngineConfig(context_length=64), prompt=Prompt(period=20, seed=0, length=60)))


def test_batch_sizes_that_do_not_fit() -> None:
    few = EngineConfig(max_running_requests=4)
    with pytest.raises(UsageError, match="batch size 5 needs max_running_requests >= 5"):
        check_batch_sizes(Program.from_batch_sizes(few, [1, 5]), [1, 5])
    scarce = EngineConfig(kv_tokens=300)
    with pytest.raises(UsageError, match=r"batch size 10 needs kv_tokens >= \d+, the configuration has 300"):
        check_batch_sizes(Program.from_batch_sizes(scarce, [1, 10]), [1, 10])
