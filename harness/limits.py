"""What a request may ask of an engine: the length limits of SGLang's scheduler, restated as arithmetic."""

from collections.abc import Sequence

from harness.configuration import EngineConfig
from harness.errors import UsageError
from harness.program import Abort, Program, Submit

INPUT_RESERVE = 6
"""Tokens by which a prompt must stay below the context length (managers/tp_worker.py, max_req_input_len)."""


def output_limit(config: EngineConfig, prompt_length: int) -> int:
    """Most tokens a request can be given before the context ends (Scheduler.init_req_max_new_tokens)."""
    return config.context_length - 2 - prompt_length


def ahead(config: EngineConfig) -> int:
    """Tokens of a request that a step allocates beyond what is accepted: V2 does so a step earlier still."""
    return 2 * a_step(config) if config.speculative else 0


def a_step(config: EngineConfig) -> int:
    """Tokens of a request for which a spec step needs KV slots, to draft or to verify.

    managers/utils.py, get_alloc_len_per_decode. With pages and topk > 1 each branch of the tree has whole pages, with a
    copy of the request's last one: ScheduleBatch.new_tokens_required_next_decode.
    """
    each, page = config.steps, config.page_size
    if config.topk > 1 and page > 1:
        each = whole_pages(config.steps + page, page)
    return max(each * config.topk, config.verified_tokens)


def whole_pages(tokens: int, page_size: int) -> int:
    """Tokens of as many pages as it takes."""
    return -(-tokens // page_size) * page_size


def kv_tokens_needed(config: EngineConfig, submit: Submit, prompt_length: int) -> int:
    """KV slots, in tokens, with which one such request can run to its end, alone."""
    new_tokens = min(submit.max_new_tokens, output_limit(config, prompt_length))
    page = config.page_size
    run = whole_pages(prompt_length + new_tokens + ahead(config), page) + page
    # Fewer would shorten the request (Scheduler.init_req_max_new_tokens); the pool is whole pages.
    admission = whole_pages(whole_pages(prompt_length, page) + new_tokens + page + 1, page)
    return max(run, admission)


def check_program(program: Program) -> None:
    """Raise UsageError for a request that can never run to its end on the program's configuration."""
    config = program.config
    for submit in program.submits:
        length = _longest_prompt(submit)
        if length >= config.context_length - INPUT_RESERVE:
            raise UsageError(
                f"a prompt of {length} tokens needs context_length > {length + INPUT_RESERVE}, "
                f"the configuration has {config.context_length}"
            )
        needed = kv_tokens_needed(config, submit, length)
        _check_kv(config, needed, f"a request of {length} + {submit.max_new_tokens} tokens")
    _check_aborts(program)


def _check_aborts(program: Program) -> None:
    submitted = 0
    for operation in program.operations:
        if isinstance(operation, Submit):
            submitted += operation.count
        elif isinstance(operation, Abort) and operation.request >= submitted:
            raise UsageError(f"abort of request {operation.request}: only {submitted} were submitted before it")


def check_batch_sizes(program: Program, sizes: Sequence[int]) -> None:
    """Raise UsageError where a program made from batch sizes can't hold the largest of them."""
    config, largest = program.config, max(sizes)
    if largest > config.max_running_requests:
        raise UsageError(
            f"batch size {largest} needs max_running_requests >= {largest}, "
            f"the configuration has {config.max_running_requests}"
        )
    for submit in program.submits:
        if submit.max_new_tokens > output_limit(config, _longest_prompt(submit)):
            raise UsageError(
                f"holding these batch sizes takes up to {submit.max_new_tokens} tokens a request, more than "
                f"context_length {config.context_length} leaves: fewer sizes or steps, or a larger context_length"
            )
    needed = (kv_tokens_needed(config, submit, _longest_prompt(submit)) for submit in program.submits)
    _check_kv(config, largest * max(needed, default=0), f"batch size {largest}")


def _longest_prompt(submit: Submit) -> int:
    return max(len(prompt) for prompt in submit.prompts())


def _check_kv(config: EngineConfig, needed: int, what: str) -> None:
    if needed > config.kv_tokens:
        raise UsageError(
            f"the KV pool is too small for the program: {what} needs kv_tokens >= {needed}, "
            f"the configuration has {config.kv_tokens}"
        )
