"""What SGLang itself is known to answer wrong, and how the programs of a search keep off it.

A search that ran into it would find nothing else. What SGLang merely drafts worse than it could (`cases/upstream`) is
excused by the checks and needs no avoiding.
"""

from harness.configuration import EngineConfig, Worker
from harness.limits import a_step, output_limit, whole_pages
from harness.oracle import answer_to
from harness.program import Submit
from harness.prompts import Prompt


def most_tokens(config: EngineConfig, submit: Submit, prompt_length: int) -> int:
    """Output tokens after which a request ends whatever they are."""
    return min(submit.max_new_tokens, output_limit(config, prompt_length))


def stops_late(config: EngineConfig, submit: Submit) -> bool:
    """Whether an accepted run may hold a stop and reach the length limit too: V2 then sees only the limit.

    Case v2-stop-token-outrun.
    """
    if config.worker is not Worker.V2 or submit.ignore_eos or not isinstance(submit.prompt, Prompt):
        return False
    for prompt in submit.family():
        answer = answer_to(config, submit, prompt)
        assert answer.tokens is not None
        left = most_tokens(config, submit, prompt.length) - len(answer.tokens)
        if answer.finish_reason == "stop" and left <= config.steps:
            return True
    return False


def safe_steps(config: EngineConfig, submit: Submit) -> int | None:
    """Steps after its submission within which a request may be aborted; None for any number of them.

    In V2 the abort mustn't meet the result that ends the request: a stop token or the length limit in the accepted run
    is then overlooked. Cases v2-abort-outrun and v2-stop-token-outrun.
    """
    if config.worker is not Worker.V2:
        return None
    if not submit.ignore_eos:
        return -1
    shortest = min(most_tokens(config, submit, len(prompt)) for prompt in submit.prompts())
    # A token from the prefill, then at most steps + 1 a step, one of them in flight.
    return (shortest - 1) // (config.steps + 1) - 1


def outruns_context(config: EngineConfig, submit: Submit) -> bool:
    """Whether, near the context's end, a spec step may look further ahead than the context reaches.

    SGLang's buffers hold context_length tokens for each request of a batch, in graphs of the largest captured one: a
    batch in which others leave enough of theirs unused is served. Cases draft-indices-short, of what is drafted, and
    v1-verify-mask-short, of what is verified in a graph.
    """
    ahead = max(config.verified_tokens, config.steps) if config.graphs else config.steps
    if config.worker is Worker.V2:
        ahead += config.steps + 1  # a step in vain, after a run that reached past the end
    # Before its last step a request has all tokens but one, and has read all but the last of these.
    return config.speculative and _longest(config, submit) - 2 + ahead > config.context_length


def spills_mask(config: EngineConfig, submit: Submit) -> bool:
    """Whether a spec batch that no graph fits, of such requests, may be too much for the graphs' mask.

    V2 writes each verify's mask into it (`get_verify_buffers_to_fill_after_draft`, layers/attention/triton_backend.py),
    those that run eagerly too. Case v2-eager-mask.
    """
    if config.worker is not Worker.V2 or not config.graphs:
        return False
    captured, toggle = config.graphs[-1], config.toggle
    largest = config.max_running_requests if toggle is None else min(config.max_running_requests, toggle.threshold)
    # As in `outruns_context`, but all of the batch may be as long.
    each = _longest(config, submit) - 2 + config.verified_tokens + config.steps + 1
    return largest > captured and largest * each > captured * config.context_length


def listed_tokens(
    backend: str, topk: int, steps: int, graphs: tuple[int, ...], context_length: int, threshold: int | None
) -> int | None:
    """Tokens in the cache that each request may have, for the lists of a captured draft to hold all their branches.

    `FlashInferMultiStepDraftBackend.init_cuda_graph_state` (layers/attention/flashinfer_backend.py) has room for
    context_length for each request of the largest captured batch, whatever topk. None where a list is long enough for
    anything, or isn't captured, as with one step. Case v1-flashinfer-draft-indices.
    """
    if backend != "flashinfer" or topk == 1 or steps == 1 or not graphs:
        return None
    captured = graphs[-1]
    largest = captured if threshold is None else min(captured, threshold)
    padded = captured - largest  # of a token each
    return (captured * context_length // topk - captured * steps - padded) // largest


def spills_indices(config: EngineConfig, submit: Submit) -> bool:
    """Whether a captured batch of such requests may list more KV slots than fit."""
    threshold = config.toggle.threshold if config.toggle else None
    room = listed_tokens(
        config.attention_backend, config.topk, config.steps, config.graphs, config.context_length, threshold
    )
    return config.speculative and room is not None and _longest(config, submit) - 2 > room


def outruns_row(config: EngineConfig, submit: Submit) -> bool:
    """Whether, near the context's end, slots may be allocated for which a request's row has no columns.

    A row of `ReqToTokenPool` has as many as the context and a verified tree, and four (_init_pools,
    model_executor/model_runner_kv_cache_mixin.py). Cases v1-draft-past-row, v1-draft-pages-past-row
    and v2-allocation-past-row.
    """
    columns = config.context_length + config.verified_tokens + 4
    last = _longest(config, submit) - 2  # tokens in the cache before its last step
    lengths = range(max(0, last + 1 - config.page_size), last + 1)
    return config.speculative and max(_reach(config, length) for length in lengths) > columns


def _reach(config: EngineConfig, length: int) -> int:
    """Columns up to which a spec step uses the row of a request that has so many tokens in the cache.

    V2 allocates two steps ahead, v1 as much as it drafts: with pages and topk > 1 whole pages for each branch, the last
    page of the request's own tokens anew in each (`get_last_loc_large_page_size_large_top_k`, spec_utils.py).
    """
    page = config.page_size
    if config.worker is Worker.V2:
        return length + 2 + 2 * a_step(config)
    if config.topk == 1 or page == 1:
        return length + a_step(config)
    own = length % page
    return max(length - own + whole_pages(own + config.steps, page) * config.topk, length + config.verified_tokens)


def spoils(config: EngineConfig, submit: Submit) -> bool:
    """Whether such requests may run into any of these that is not of the context's end alone."""
    return any(may(config, submit) for may in (outruns_row, spills_mask, spills_indices))


def _longest(config: EngineConfig, submit: Submit) -> int:
    """Tokens of the longest of its requests at its end."""
    return max(len(prompt) + most_tokens(config, submit, len(prompt)) for prompt in submit.prompts())
