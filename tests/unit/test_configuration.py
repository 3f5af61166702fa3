"""An engine configuration refuses what can't be, naming the setting."""

import pytest
from pydantic import ValidationError

from harness.configuration import EngineConfig, Worker


def test_defaults_of_each_worker() -> None:
    assert (EngineConfig().topk, EngineConfig().verified_tokens, EngineConfig().overlap) == (4, 16, False)
    v2 = EngineConfig(worker=Worker.V2)
    assert (v2.topk, v2.verified_tokens, v2.overlap) == (1, 4, True)
    assert EngineConfig(worker=Worker.NONE).verified_tokens == 1


def test_captured_sizes_default_to_those_that_may_run() -> None:
    assert EngineConfig(max_running_requests=5).graphs == (1, 2, 4)


@pytest.mark.parametrize(("topk", "steps", "expected"), [(1, 3, 4), (1, 7, 8), (2, 3, 8), (4, 1, 5), (8, 3, 32)])
def test_draft_tokens_default_to_what_the_tree_holds(topk: int, steps: int, expected: int) -> None:
    assert EngineConfig(topk=topk, steps=steps).verified_tokens == expected


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"worker": "v2", "topk": 4}, "worker v2 supports topk 1 only"),
        ({"worker": "v2", "overlap": False}, "overlap scheduling only"),
        ({"worker": "v1", "overlap": True}, "worker v1 has no overlap scheduling"),
        ({"topk": 4, "steps": 1, "draft_tokens": 16}, "draft_tokens=16 doesn't fit"),
        ({"topk": 1, "steps": 3, "draft_tokens": 3}, "draft_tokens must be steps"),
        ({"graphs": (4, 2)}, "graphs must be increasing"),
        ({"graphs": (32,)}, "graphs to 32 with max_running_requests=16"),
        ({"page_size": 0}, "greater than 0"),
        ({"dtype": "int8"}, "'float32', 'bfloat16' or 'float16'"),
        ({"pages": 1}, "Extra inputs"),
        ({"worker": "none", "toggle": {"threshold": 5}}, "a toggle needs speculation to switch"),
        ({"toggle": {"threshold": 0}}, "toggle.threshold\n  Input should be greater than 0"),
        ({"toggle": {"threshold": 5, "hysteresis": 5}}, "hysteresis 5 must be smaller than threshold 5"),
        ({"toggle": {"threshold": 5, "strategy": "cold"}}, "'warm' or 'plain'"),
        ({"toggle": {"threshold": 5, "kept_tokens": 9}}, "kept_tokens is for strategy plain"),
    ],
)
def test_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        EngineConfig(**settings)
