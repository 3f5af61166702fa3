"""Operations of a program as the messages that SGLang's tokenizer process would send (managers/io_struct.py)."""

import importlib
from functools import cache
from typing import Any

from harness.program import Submit

IO = "sglang.srt.managers.io_struct"
PREFIX = "request-"


def rid_of(number: int) -> str:
    """Request id; of fixed width, since SGLang aborts every request whose id starts with the given one."""
    return f"{PREFIX}{number:06d}"


@cache  # asked for each request of each batch, several times a step
def number_of(rid: str) -> int:
    """The inverse of `rid_of`."""
    return int(rid[len(PREFIX) :])


def sampling(submit: Submit) -> dict[str, Any]:
    """Its `SamplingParams` (sampling/sampling_params.py), by name."""
    return {
        "max_new_tokens": submit.max_new_tokens,
        "temperature": submit.temperature,
        "frequency_penalty": submit.frequency_penalty,
        "ignore_eos": submit.ignore_eos,
        "stop_token_ids": None if submit.stop_token is None else [submit.stop_token],
    }


def generate(submit: Submit, number: int, prompt: tuple[int, ...]) -> Any:
    """A `TokenizedGenerateReqInput` that streams each token."""
    parameters = importlib.import_module("sglang.srt.sampling.sampling_params").SamplingParams(**sampling(submit))
    parameters.normalize(None)
    return importlib.import_module(IO).TokenizedGenerateReqInput(
        rid=rid_of(number),
        input_text="",
        input_ids=list(prompt),
        mm_inputs=None,
        sampling_params=parameters,
        return_logprob=submit.logprobs,
        logprob_start_len=-1,
        top_logprobs_num=submit.top_logprobs,
        token_ids_logprob=list(submit.token_ids_logprob) or None,
        stream=True,
    )


def abort(number: int) -> Any:
    """An `AbortReq` for one request."""
    return importlib.import_module(IO).AbortReq(rid=rid_of(number))


def flush() -> Any:
    """A `FlushCacheReqInput` that is answered at once."""
    return importlib.import_module(IO).FlushCacheReqInput()
