"""Servers that the toggle would not serve right are refused, with the reason."""

from types import SimpleNamespace
from typing import Any

import pytest

from harness.toggle import support
from harness.toggle.support import Unsupported, refuse_model, refuse_server


def server(**settings: Any) -> SimpleNamespace:
    usual = {
        "speculative_algorithm": "EAGLE3",
        "speculative_eagle_topk": 4,
        "disable_overlap_schedule": True,
        "disaggregation_mode": "null",
    }
    return SimpleNamespace(**(usual | settings))


def test_both_workers_are_supported() -> None:
    refuse_server(server())
    refuse_server(server(disable_overlap_schedule=False, speculative_eagle_topk=1))


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
        refuse_server(server(**settings))


def test_refused_release(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(support, "version", lambda _: "0.6.0")
    with pytest.raises(Unsupported, match=r"tested with sglang 0\.5\.12\.post1, not 0\.6\.0"):
        refuse_server(server())


def test_refused_model() -> None:
    refuse_model(SimpleNamespace(hybrid_gdn_config=None, mamba2_config=None, hybrid_lightning_config=None))
    with pytest.raises(Unsupported, match="recurrent state"):
        refuse_model(SimpleNamespace(hybrid_gdn_config=object(), mamba2_config=None, hybrid_lightning_config=None))
