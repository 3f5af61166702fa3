"""Servers that the toggle would not serve right are refused, with the reason."""

from importlib.metadata import distribution
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.toggle import support
from harness.toggle.support import Backends, Unsupported, refuse_models, refuse_server

USUAL = {
    "speculative_algorithm": "EAGLE3",
    "speculative_eagle_topk": 4,
    "disable_overlap_schedule": True,
    "disaggregation_mode": "null",
    "enable_dp_attention": False,
    "enable_multi_layer_eagle": False,
    "enable_two_batch_overlap": False,
    "speculative_adaptive": False,
    "enable_lora": None,
    "enable_pdmux": False,
    "enable_hisparse": False,
    "enable_streaming_session": False,
    "enable_lmcache": False,
    "moe_a2a_backend": "none",
    "speculative_moe_a2a_backend": None,
    "moe_dense_tp_size": None,
    "enable_deterministic_inference": False,
    "attn_cp_size": 1,
    "attention_backend": "triton",
    "prefill_attention_backend": None,
    "decode_attention_backend": None,
    "speculative_draft_attention_backend": None,
}


def server(**settings: Any) -> SimpleNamespace:
    return SimpleNamespace(**(USUAL | settings))


def test_sglang_has_each_setting_that_is_asked_for() -> None:
    source = Path(str(distribution("sglang").locate_file("sglang/srt/server_args.py"))).read_text()
    assert [name for name in USUAL if f"\n    {name}: " not in source] == []


def test_both_workers_are_supported() -> None:
    for strategy in ("warm", "plain"):
        refuse_server(server(), strategy)
        refuse_server(server(disable_overlap_schedule=False, speculative_eagle_topk=1), strategy)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"speculative_algorithm": None}, "the server doesn't speculate"),
        ({"speculative_algorithm": "NGRAM"}, "--speculative-algorithm NGRAM isn't EAGLE or EAGLE3"),
        ({"disable_overlap_schedule": False}, "V2 speculates with --speculative-eagle-topk 1 only, not 4"),
        ({"disaggregation_mode": "decode"}, "--disaggregation-mode is decode .*prepared elsewhere"),
        ({"enable_dp_attention": True}, "--enable-dp-attention is on"),
        ({"enable_multi_layer_eagle": True}, "--enable-multi-layer-eagle is on"),
        ({"enable_two_batch_overlap": True}, "--enable-two-batch-overlap is on"),
        ({"speculative_adaptive": True}, "--speculative-adaptive is on"),
        ({"enable_lora": True}, "--enable-lora is on"),
        ({"moe_a2a_backend": "deepep"}, "--moe-a2a-backend is deepep .*gathers tokens"),
        ({"speculative_moe_a2a_backend": "deepep"}, "--speculative-moe-a2a-backend is deepep .*gathers tokens"),
        ({"moe_dense_tp_size": 1}, "--moe-dense-tp-size is 1 .*gathers tokens"),
        ({"enable_deterministic_inference": True}, "--enable-deterministic-inference is on .*other kernels"),
    ],
)
def test_refused_server(settings: dict[str, Any], reason: str) -> None:
    with pytest.raises(Unsupported, match=f"SPEC_TOGGLE_THRESHOLD is set, but .*{reason}"):
        refuse_server(server(**settings), "warm")


def test_a_draft_without_gathering_is_supported() -> None:
    """SGLang sets this itself for some models."""
    refuse_server(server(speculative_moe_a2a_backend="none"), "warm")


@pytest.mark.parametrize(
    ("setting", "value", "said"),
    [("enable_streaming_session", True, "on"), ("enable_lmcache", True, "on"), ("attn_cp_size", 2, "2")],
)
def test_refused_server_of_strategy_plain(setting: str, value: object, said: str) -> None:
    """What takes the KV of a request that lags as a whole, and what the catch-up wasn't tested with."""
    refuse_server(server(**{setting: value}), "warm")
    with pytest.raises(Unsupported, match=f"--{setting.replace('_', '-')} is {said} .*strategy plain"):
        refuse_server(server(**{setting: value}), "plain")


@pytest.mark.parametrize("strategy", ["warm", "plain"])
@pytest.mark.parametrize("setting", ["attention_backend", "speculative_draft_attention_backend"])
def test_refused_deepseek_v4(setting: str, strategy: str) -> None:
    with pytest.raises(Unsupported, match="SPEC_TOGGLE_THRESHOLD is set, but attention backend dsv4"):
        refuse_server(server(**{setting: "dsv4"}), strategy)


@pytest.mark.parametrize(
    "settings",
    [
        {"attention_backend": "fa3"},
        {"decode_attention_backend": "fa4"},
        {"speculative_draft_attention_backend": "fa3"},
        {"decode_attention_backend": "triton", "speculative_draft_attention_backend": "fa4"},
    ],
)
def test_refused_trees_with_strategy_warm(settings: dict[str, Any]) -> None:
    """FlashAttention for the draft's decodes, wherever that is set; its prefills and verifies may have it."""
    refuse_server(server(**settings), "plain")
    refuse_server(server(**settings, speculative_eagle_topk=1), "warm")
    with pytest.raises(Unsupported, match=r"backend fa[34] takes each decode for one of --speculative-eagle-topk 4"):
        refuse_server(server(**settings), "warm")


@pytest.mark.parametrize(
    "settings",
    [
        {"prefill_attention_backend": "fa3"},
        {"attention_backend": "fa3", "decode_attention_backend": "triton"},
        {"attention_backend": "fa3", "speculative_draft_attention_backend": "flashinfer"},
    ],
)
def test_trees_with_another_backend_for_the_draft(settings: dict[str, Any]) -> None:
    refuse_server(server(**settings), "warm")


@pytest.mark.parametrize(
    ("settings", "untested"),
    [
        ({}, []),
        ({"attention_backend": "fa3"}, ["fa3"]),
        ({"decode_attention_backend": "trtllm_mha"}, ["trtllm_mha"]),
        ({"prefill_attention_backend": "fa4", "speculative_draft_attention_backend": "fa3"}, ["fa3", "fa4"]),
        ({"attention_backend": "fa3", "prefill_attention_backend": "flashinfer"}, ["fa3"]),
        (
            {
                "attention_backend": "fa3",
                "prefill_attention_backend": "flashinfer",
                "decode_attention_backend": "triton",
            },
            [],
        ),
    ],
)
def test_untested_backends(settings: dict[str, Any], untested: list[str]) -> None:
    assert Backends.of(server(**settings)).untested == untested


def test_refused_release(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(support, "version", lambda _: "0.6.0")
    with pytest.raises(Unsupported, match=r"tested with sglang 0\.5\.12\.post1, not 0\.6\.0"):
        refuse_server(server(), "warm")


def model(**settings: Any) -> SimpleNamespace:
    usual = {
        "mambaish_config": None,
        "is_hybrid_swa": False,
        "model_is_mrope": False,
    }
    return SimpleNamespace(**(usual | settings))


def test_refused_models() -> None:
    for strategy in ("warm", "plain"):
        refuse_models(model(), model(), strategy)
        with pytest.raises(Unsupported, match=r"recurrent state \(KimiLinearConfig\)"):
            refuse_models(model(mambaish_config=type("KimiLinearConfig", (), {})()), model(), strategy)


@pytest.mark.parametrize(
    ("target", "draft", "reason"),
    [
        ({"is_hybrid_swa": True}, {}, "sliding window"),
        ({}, {"is_hybrid_swa": True}, "sliding window"),
        ({}, {"model_is_mrope": True}, "mrope"),
    ],
)
def test_refused_models_of_strategy_plain(target: dict[str, Any], draft: dict[str, Any], reason: str) -> None:
    refuse_models(model(**target), model(**draft), "warm")
    with pytest.raises(Unsupported, match=f"SPEC_TOGGLE_STRATEGY is plain, but .*{reason}.*: use warm"):
        refuse_models(model(**target), model(**draft), "plain")
