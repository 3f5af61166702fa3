"""Servers that the toggle would not serve right are refused, with the reason."""

from types import SimpleNamespace
from typing import Any

import pytest

from harness.toggle import support
from harness.toggle.support import Unsupported, refuse_models, refuse_server


def server(**settings: Any) -> SimpleNamespace:
    usual = {
        "speculative_algorithm": "EAGLE3",
        "speculative_eagle_topk": 4,
        "disable_overlap_schedule": True,
        "disaggregation_mode": "null",
    }
    return SimpleNamespace(**(usual | settings))


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
        ({"disaggregation_mode": "decode"}, "--disaggregation-mode decode"),
        ({"enable_dp_attention": True}, "--enable-dp-attention is on"),
        ({"enable_multi_layer_eagle": True}, "--enable-multi-layer-eagle is on"),
        ({"enable_two_batch_overlap": True}, "--enable-two-batch-overlap is on"),
        ({"speculative_adaptive": True}, "--speculative-adaptive is on"),
        ({"enable_lora": True}, "--enable-lora is on"),
    ],
)
def test_refused_server(settings: dict[str, Any], reason: str) -> None:
    with pytest.raises(Unsupported, match=f"SPEC_TOGGLE_THRESHOLD is set, but .*{reason}"):
        refuse_server(server(**settings), "warm")


@pytest.mark.parametrize("setting", ["enable_streaming_session", "enable_lmcache"])
def test_refused_server_of_strategy_plain(setting: str) -> None:
    """What takes the KV of a request that lags as a whole."""
    refuse_server(server(**{setting: True}), "warm")
    with pytest.raises(Unsupported, match=f"--{setting.replace('_', '-')} is on .*strategy plain"):
        refuse_server(server(**{setting: True}), "plain")


def test_refused_release(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(support, "version", lambda _: "0.6.0")
    with pytest.raises(Unsupported, match=r"tested with sglang 0\.5\.12\.post1, not 0\.6\.0"):
        refuse_server(server(), "warm")


def model(**settings: Any) -> SimpleNamespace:
    usual = {
        "hybrid_gdn_config": None,
        "mamba2_config": None,
        "hybrid_lightning_config": None,
        "is_hybrid_swa": False,
        "model_is_mrope": False,
    }
    return SimpleNamespace(**(usual | settings))


def test_refused_models() -> None:
    for strategy in ("warm", "plain"):
        refuse_models(model(), model(), strategy)
        with pytest.raises(Unsupported, match="recurrent state"):
            refuse_models(model(hybrid_gdn_config=object()), model(), strategy)


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
