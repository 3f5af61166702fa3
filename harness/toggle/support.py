"""What the toggle works with; everything else is refused at start, with the reason."""

from collections.abc import Iterator
from importlib.metadata import version
from typing import Any, NamedTuple

from harness.toggle.settings import PREFIX

RELEASES = ("0.5.12.post1",)
ALGORITHMS = ("EAGLE", "EAGLE3")
ATTENTION_BACKENDS = ("triton", "flashinfer")
"""Those that it was tested with; others start with a warning."""
FLASH_ATTENTION = ("fa3", "fa4")

_Settings = tuple[tuple[str, tuple[object, ...], str], ...]
"""Attributes of `ServerArgs` (server_args.py), the values that they may have, and why no other."""

_OFF = (False, None)
_GATHERED = "it gathers tokens of several ranks, into buffers whose length only SGLang's own steps set"
_SETTINGS: _Settings = (
    ("disaggregation_mode", ("null",), "decode batches are prepared elsewhere"),
    ("enable_dp_attention", _OFF, "DP attention: each rank would decide for itself"),
    ("enable_multi_layer_eagle", _OFF, "multi-layer EAGLE has workers of its own"),
    ("enable_two_batch_overlap", _OFF, "two-batch overlap splits the batch after the toggle has decided"),
    ("speculative_adaptive", _OFF, "SGLang's own adaptive speculation switches the same states"),
    ("enable_lora", _OFF, "a second set of captured graphs would rebind the buffers of LoRA's first"),
    ("enable_pdmux", _OFF, "PD multiplexing keeps attention backends of its own"),
    ("enable_hisparse", _OFF, "HiSparse follows decode steps that the toggle would hide from it"),
    ("moe_a2a_backend", ("none",), _GATHERED),
    ("speculative_moe_a2a_backend", ("none", None), _GATHERED),
    ("moe_dense_tp_size", (None,), _GATHERED),
    (
        "enable_deterministic_inference",
        _OFF,
        "spec and plain steps have other kernels and random numbers, so that tokens would depend on the load",
    ),
)
_SETTINGS_OF_PLAIN: _Settings = (
    (
        "enable_streaming_session",
        _OFF,
        "a session keeps a request's KV as a whole, and strategy plain has the draft's lag",
    ),
    ("enable_lmcache", _OFF, "LMCache takes a request's KV as a whole, and strategy plain has the draft's lag"),
    ("attn_cp_size", (1,), "the draft extend of strategy plain wasn't tested with context parallelism"),
)
"""Those of strategy plain as well; the first two take KV past `Req.pop_committed_kv_cache`."""


class Unsupported(ValueError):
    """A server that the toggle would not serve right."""


class Backends(NamedTuple):
    """Names of attention backends, as `ModelRunner._get_attention_backend` (model_executor/model_runner.py) chooses."""

    prefill: str
    decode: str
    draft: str
    """Of the draft's decodes."""

    @classmethod
    def of(cls, server_args: Any) -> "Backends":
        """Those of a `ServerArgs`: the draft's are the target's, but for a setting of its own."""
        usual = server_args.attention_backend
        decode = server_args.decode_attention_backend or usual
        draft = server_args.speculative_draft_attention_backend or decode
        return cls(server_args.prefill_attention_backend or usual, decode, draft)

    @property
    def untested(self) -> list[str]:
        """Those that the toggle wasn't tested with, each once."""
        return sorted(set(self) - set(ATTENTION_BACKENDS))


def refuse_server(server_args: Any, strategy: str) -> None:
    """Raise Unsupported for a `ServerArgs` (server_args.py) that a strategy of the toggle wasn't made for."""
    for reason in _reasons(server_args, strategy):
        raise Unsupported(
            f"{PREFIX}THRESHOLD is set, but {reason}: unset it, or change the setting that it conflicts with"
        )


def refuse_models(target: Any, draft: Any, strategy: str) -> None:
    """Raise Unsupported for loaded models that a strategy would not decode right; given as their `ModelRunner`."""
    # Of all families that SGLang keeps a state for, those registered from outside too.
    recurrent = target.mambaish_config
    if recurrent is not None:
        raise Unsupported(
            f"{PREFIX}THRESHOLD is set, but the target keeps a recurrent state ({type(recurrent).__name__}), "
            "which speculative and plain steps store in different places: unset it for this model"
        )
    if strategy != "plain":
        return
    if target.is_hybrid_swa or draft.is_hybrid_swa:
        raise Unsupported(
            f"{PREFIX}STRATEGY is plain, but a model has KV of its own for layers with a sliding window, "
            "some of which is gone when the draft catches up: use warm for this model"
        )
    if draft.model_is_mrope:
        raise Unsupported(
            f"{PREFIX}STRATEGY is plain, but the draft's positions have several dimensions (mrope), "
            "of which plain steps keep one: use warm for this model"
        )


def _reasons(server_args: Any, strategy: str) -> Iterator[str]:
    release = version("sglang")
    if release not in RELEASES:
        yield f"the toggle was tested with sglang {', '.join(RELEASES)}, not {release}"
    yield from _of_speculation(server_args)
    for attribute, allowed, why in (*_SETTINGS, *(_SETTINGS_OF_PLAIN if strategy == "plain" else ())):
        value = getattr(server_args, attribute)
        if value not in allowed:
            yield f"--{attribute.replace('_', '-')} is {'on' if value is True else value} ({why})"
    yield from _of_backends(Backends.of(server_args), server_args.speculative_eagle_topk, strategy)


def _of_speculation(server_args: Any) -> Iterator[str]:
    algorithm, topk = server_args.speculative_algorithm, server_args.speculative_eagle_topk
    if algorithm is None:
        yield "the server doesn't speculate (--speculative-algorithm)"
    elif algorithm not in ALGORITHMS:
        yield f"--speculative-algorithm {algorithm} isn't {' or '.join(ALGORITHMS)}"
    elif not server_args.disable_overlap_schedule and topk != 1:
        yield f"worker V2 speculates with --speculative-eagle-topk 1 only, not {topk}"


def _of_backends(backends: Backends, topk: int, strategy: str) -> Iterator[str]:
    # `init_forward_metadata_replay_cuda_graph` (layers/attention/deepseek_v4_backend.py) reads `_replay_forward_batch`,
    # which only `CudaGraphRunner.replay_prepare` sets; and DeepSeek-V4 has what strategy plain refuses in models.
    if "dsv4" in backends:
        yield "attention backend dsv4 (DeepSeek-V4) plans from a batch that only SGLang's own graph runner shows it"
    # `forward_decode` (layers/attention/flashattention_backend.py) takes any with `spec_info` for a tree's branches.
    if strategy == "warm" and topk > 1 and backends.draft in FLASH_ATTENTION:
        yield (
            f"the draft's attention backend {backends.draft} takes each decode for one of "
            f"--speculative-eagle-topk {topk} branches, and {PREFIX}STRATEGY=warm has others"
        )
