"""What a request may ask of an engine: the length limits of SGLang's scheduler, restated as arithmetic."""

from collections.abc import Sequence

from harness.configuration import EngineConfig
from harness.errors import UsageError
from harness.program import Program, Submit

INPUT_RESERVE = 6
"""Tokens by which a prompt must stay below the context length (managers/tp_worker.py, max_req_input_len)."""


def output_limit(config: EngineConfig, prompt_length: int) -> int:
    """Most tokens a request can be given before the context ends (Scheduler.init_req_max_new_tokens)."""
    return config.context_length - 2 - prompt_length


def kv_tokens_needed(config: EngineConfig, submit: Submit, prompt_length: int) -> int:
    """KV slots, in tokens, with which one such request can run to its end, alone."""
    new_tokens = min(submit.max_new_tokens, output_limit(config, prompt_length))
    # A step allocates ahead of what it accepts (managers/utils.py, get_alloc_len_per_decode); V2 a step earlier still.
    ahead = 2 * max(config.steps * config.topk, config.verified_tokens) if config.speculative else 0
    pages = -(-(prompt_length + new_tokens + ahead) // config.page_size)
    return (pages + 1) * config.page_size + 1


def check_program(program: Program) -> None:
    """Raise UsageError for a request that can never run to its end on the program's configuration."""
    config = program.config
    for submit in _submits(program):
        length = _longest_prompt(submit)
        if length >= config.context_length - INPUT_RESERVE:
            raise UsageError(
                f"a prompt of {length} tokens needs context_length > {length + INPUT_RESERVE}, "
                f"the configuration has {config.context_length}"
            )
        needed = kv_tokens_needed(config, submit, length)
        _check_kv(config, needed, f"a request of {length} + {submit.max_new_tokens} tokens")


def check_batch_sizes(program: Program, sizes: Sequence[int]) -> None:
    """Raise UsageError where a program made from batch sizes can't hold the largest of them."""
    config, largest = program.config, max(sizes)
    if largest > config.max_running_requests:
        raise UsageError(
            f"batch size {largest} needs max_running_requests >= {largest}, "
            f"the configuration has {config.max_running_requests}"
        )
    needed = (kv_tokens_needed(config, submit, _longest_prompt(submit)) for submit in _submits(program))
    _check_kv(config, largest * max(needed, default=0), f"batch size {largest}")


def _submits(program: Program) -> list[Submit]:
    return [operation for operation in program.operations if isinstance(operation, Submit)]


def _longest_prompt(submit: Submit) -> int:
    return max(len(prompt) for prompt in submit.prompts())


def _check_kv(config: EngineConfig, needed: int, what: str) -> None:
    if needed > config.kv_tokens:
        raise UsageError(
            f"the KV pool is too small for the program: {what} needs kv_tokens >= {needed}, "
            f"the configuration has {config.kv_tokens}"
        )
