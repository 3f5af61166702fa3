"""Seeded random programs over the whole alphabet, for tests that need no shrinking."""

from random import Random

from harness.configuration import EngineConfig, Worker
from harness.oracle import answer_to
from harness.program import Abort, Drain, Flush, Operation, Program, Retract, Step, Submit
from harness.prompts import Prompt

MOST_REQUESTS = 12


def random_program(config: EngineConfig, seed: int) -> Program:
    """One program: requests come and go, end by length, stop token or end of sequence, are aborted and retracted."""
    rng = Random(seed)
    operations: list[Operation] = []
    abortable: dict[int, int] = {}
    submitted = 0
    for _ in range(rng.randint(2, 6)):
        if submitted < MOST_REQUESTS:
            submit = _submit(config, rng, MOST_REQUESTS - submitted)
            abortable |= dict.fromkeys(range(submitted, submitted + submit.count), _safe_steps(config, submit))
            submitted += submit.count
            operations.append(submit)
        steps = rng.choice([1, 1, 2, 3, 5, 6])
        operations.append(Step(count=steps))
        abortable = {number: left - steps for number, left in abortable.items()}
        operations += _event(rng, [number for number, left in abortable.items() if left >= 0])
    return Program(config=config, operations=(*operations, Drain(), Flush(), Step()))


def _submit(config: EngineConfig, rng: Random, most: int) -> Submit:
    submit = _any_submit(rng, most)
    while config.worker is Worker.V2 and _stops_late(config, submit):
        submit = _any_submit(rng, most)
    return submit


def _safe_steps(config: EngineConfig, submit: Submit) -> int:
    """Steps within which an abort is answered right: with V2 it mustn't meet the result that ends the request."""
    if config.worker is not Worker.V2:
        return 1_000_000
    if not submit.ignore_eos:
        return -1
    # A token from the prefill, then at most steps + 1 a step, one of them in flight: cases/upstream/v2-abort-outrun.
    return (submit.max_new_tokens - 1) // (config.steps + 1) - 1


def _stops_late(config: EngineConfig, submit: Submit) -> bool:
    """Whether SGLang's V2 answers wrong, and aborts must be kept off too: cases/upstream/v2-stop-token-outrun."""
    answers = [answer_to(config, submit, prompt) for prompt in submit.family()]
    return any(
        answer.finish_reason == "stop" and submit.max_new_tokens - len(answer.tokens) <= config.steps
        for answer in answers
    )


def _any_submit(rng: Random, most: int) -> Submit:
    # A period as long as prompt and output together keeps every KV entry of the request live to its end.
    period = rng.choice([rng.randint(4, 40), rng.randint(60, 128)])
    prompt = Prompt(period=period, seed=rng.randrange(100), length=period + rng.randint(2, 12))
    stop_token = rng.choice([None, prompt.sequence(prompt.length + 6)[-1]])
    return Submit(
        count=rng.randint(1, min(most, 5)),
        prompt=prompt,
        max_new_tokens=rng.choice([rng.randint(1, 24), rng.randint(20, 40)]),
        stop_token=stop_token,
        ignore_eos=stop_token is None and rng.random() < 0.5,
    )


def _event(rng: Random, abortable: list[int]) -> list[Operation]:
    match rng.randrange(4):
        case 0 if abortable:
            return [Abort(request=rng.choice(abortable))]
        case 1:
            return [Retract()]
        case 2:
            return [Drain(), Flush()]
    return []
