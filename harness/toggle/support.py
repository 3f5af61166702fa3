"""What the toggle works with; everything else is refused at start, with the reason."""

from importlib.metadata import version
from typing import Any

from harness.toggle.settings import PREFIX

RELEASES = ("0.5.12.post1",)
ALGORITHMS = ("EAGLE", "EAGLE3")
ATTENTION_BACKENDS = ("triton", "flashinfer")
"""Those that it was tested with; others start with a warning."""

_OFF = (
    ("enable_dp_attention", "DP attention: each rank would decide for itself"),
    ("enable_multi_layer_eagle", "multi-layer EAGLE has workers of its own"),
    ("enable_two_batch_overlap", "two-batch overlap splits the batch after the toggle has decided"),
    ("speculative_adaptive", "SGLang's own adaptive speculation switches the same states"),
    ("enable_lora", "a second set of captured graphs would rebind the buffers of LoRA's first"),
    ("enable_pdmux", "PD multiplexing keeps attention backends of its own"),
    ("enable_hisparse", "HiSparse follows decode steps that the toggle would hide from it"),
)
"""Attributes of `ServerArgs` (server_args.py) that must be off, and why."""

_OFF_WITH_PLAIN = (
    ("enable_streaming_session", "a session keeps a request's KV as a whole, and strategy plain has the draft's lag"),
    ("enable_lmcache", "LMCache takes a request's KV as a whole, and strategy plain has the draft's lag"),
)
"""Those that strategy plain needs off as well: what takes KV past `Req.pop_committed_kv_cache`."""


class Unsupported(ValueError):
    """A server that the toggle would not serve right."""


def refuse_server(server_args: Any, strategy: str) -> None:
    """Raise Unsupported for a `ServerArgs` (server_args.py) that a strategy of the toggle wasn't made for."""
    reason = _reason(server_args, strategy)
    if reason is not None:
        raise Unsupported(
            f"{PREFIX}THRESHOLD is set, but {reason}: unset it, or change the setting that it conflicts with"
        )


def refuse_models(target: Any, draft: Any, strategy: str) -> None:
    """Raise Unsupported for loaded models that a strategy would not decode right; given as their `ModelRunner`."""
    for attribute in ("hybrid_gdn_config", "mamba2_config", "hybrid_lightning_config"):
        if getattr(target, attribute) is not None:
            raise Unsupported(
                f"{PREFIX}THRESHOLD is set, but the target keeps a recurrent state ({attribute}), "
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


def _reason(server_args: Any, strategy: str) -> str | None:
    release = version("sglang")
    if release not in RELEASES:
        return f"the toggle was tested with sglang {', '.join(RELEASES)}, not {release}"
    algorithm = server_args.speculative_algorithm
    if algorithm is None:
        return "the server doesn't speculate (--speculative-algorithm)"
    if algorithm not in ALGORITHMS:
        return f"--speculative-algorithm {algorithm} isn't {' or '.join(ALGORITHMS)}"
    if server_args.disaggregation_mode != "null":
        return f"--disaggregation-mode {server_args.disaggregation_mode} prepares decode batches elsewhere"
    if not server_args.disable_overlap_schedule and server_args.speculative_eagle_topk != 1:
        return f"worker V2 speculates with --speculative-eagle-topk 1 only, not {server_args.speculative_eagle_topk}"
    for attribute, why in (*_OFF, *(_OFF_WITH_PLAIN if strategy == "plain" else ())):
        if getattr(server_args, attribute, False):
            return f"--{attribute.replace('_', '-')} is on ({why})"
    return None
