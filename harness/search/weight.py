"""Which of two failing programs is the simpler one, and whether they fail alike."""

import re

from harness.configuration import EngineConfig
from harness.outcome import Outcome
from harness.program import Abort, Drain, Flush, Program, Retract, Step, Submit
from harness.prompts import Prompt

Weight = tuple[int, ...]


def signature(outcome: Outcome) -> tuple[str, str]:
    """What two outcomes have in common that show the same bug: the check, or the error without its numbers."""
    if outcome.check is not None:
        return outcome.kind, outcome.check
    return outcome.kind, re.sub(r"\d+(\.\d+)?", "N", outcome.text or "")


def weight(program: Program) -> Weight:
    """Smaller is simpler: fewer operations first, then fewer requests, steps and tokens, then a plainer engine."""
    operations = program.operations
    submits = program.submits
    return (
        len(operations),
        sum(submit.count for submit in submits),
        sum(_steps(operation) for operation in operations),
        sum(_extras(submit) for submit in submits),
        sum(submit.max_new_tokens for submit in submits),
        sum(_prompt(submit) for submit in submits),
        *_engine(program.config),
    )


def _steps(operation: Submit | Step | Abort | Retract | Flush | Drain) -> int:
    match operation:
        case Step(count=count):
            return count
        case Drain():
            return 8  # as many as it takes; a few steps by number say more
        case _:
            return 0


def _extras(submit: Submit) -> int:
    plain = Submit()
    ends, drawn = ("stop_token", "ignore_eos"), ("temperature", "frequency_penalty")
    names = (*ends, *drawn, "logprobs", "top_logprobs", "token_ids_logprob")
    return sum(getattr(submit, name) != getattr(plain, name) for name in names)


def _prompt(submit: Submit) -> int:
    if isinstance(submit.prompt, Prompt):
        return submit.prompt.length + submit.prompt.seed
    return len(submit.prompt)


def _engine(config: EngineConfig) -> Weight:
    plain = EngineConfig(worker=config.worker)
    names = ("kv_tokens", "context_length", "chunked_prefill_size", "radix_cache", "dtype", "attention_backend")
    toggle = config.toggle
    return (
        len(config.graphs),
        config.page_size,
        config.topk,
        config.steps,
        0 if toggle is None else toggle.threshold + toggle.hysteresis,
        sum(getattr(config, name) != getattr(plain, name) for name in names),
        abs(config.max_running_requests - plain.max_running_requests),
    )
