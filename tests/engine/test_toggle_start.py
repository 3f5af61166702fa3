"""What a toggled worker refuses, or warns of, when it starts."""

import importlib
import logging
from typing import Any

import pytest
import torch

from harness.configuration import EngineConfig, Toggle
from harness.engine.device import Device
from harness.engine.engine import Engine
from tests.support.engines import Engines

WARM = EngineConfig(toggle=Toggle(threshold=3))
PLAIN = EngineConfig(toggle=Toggle(threshold=3, strategy="plain"))


@pytest.fixture
def started(boot: Engines, device: Device) -> None:
    """SGLang can be imported, and the hooks are in."""
    boot.close()
    Engine(WARM.model_copy(update={"graphs": ()}), device).close()


def patch(monkeypatch: pytest.MonkeyPatch, module: str, name: str, value: object) -> None:
    monkeypatch.setattr(importlib.import_module(module), name, value)


@pytest.mark.usefixtures("started")
def test_a_server_is_refused_without_the_hook_too(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """SGLang would only log that it couldn't apply it."""
    server_args = importlib.import_module("sglang.srt.server_args").ServerArgs
    monkeypatch.setattr(server_args, "check_server_args", server_args.check_server_args.__wrapped__)
    patch(monkeypatch, "harness.toggle.support", "version", lambda _: "0.6.0")
    with pytest.raises(ValueError, match=r"tested with sglang 0\.5\.12\.post1, not 0\.6\.0") as refused:
        Engine(WARM, device).close()
    assert type(refused.value).__name__ == "Unsupported"


@pytest.mark.usefixtures("started")
def test_ranks_are_asked_whether_they_agree(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Any, int]] = []

    def check_agreement(settings: Any, group: Any) -> None:
        asked.append((settings.policy.threshold, group.world_size))

    patch(monkeypatch, "harness.toggle.schedule", "check_agreement", check_agreement)
    Engine(WARM, device).close()
    assert asked == [(3, 1)]


@pytest.mark.usefixtures("started")
@pytest.mark.parametrize("wrong", ["width", "dtype"])
def test_other_hidden_states_than_configured(device: Device, monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    """Strategy plain makes its rings from the configuration."""
    plain_target = importlib.import_module("harness.toggle.plain_target")

    class Returning(plain_target.PlainTarget):  # type: ignore[name-defined,misc]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            output = self.graphs.output_buffers[self.graphs.max_bs]
            states = output.hidden_states
            output.hidden_states = states[:, 1:] if wrong == "width" else states.to(torch.float64)

    patch(monkeypatch, "harness.toggle.schedule", "PlainTarget", Returning)
    with pytest.raises(ValueError, match=r"returns hidden states \d+ wide in .*: use SPEC_TOGGLE_STRATEGY=warm"):
        Engine(PLAIN, device).close()


@pytest.mark.usefixtures("started")
@pytest.mark.parametrize(("threshold", "warned"), [(15, False), (16, True), (17, True)])
def test_a_threshold_that_is_never_exceeded(
    device: Device, caplog: pytest.LogCaptureFixture, threshold: int, warned: bool
) -> None:
    config = EngineConfig(graphs=(), max_running_requests=16, toggle=Toggle(threshold=threshold))
    with caplog.at_level(logging.WARNING, "harness.toggle"):
        Engine(config, device).close()
    said = f"Speculation is never off: SPEC_TOGGLE_THRESHOLD={threshold}, and 16 requests run at most"
    assert (said in caplog.text) == warned


@pytest.mark.usefixtures("started")
def test_an_untested_backend(device: Device, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever it is set: here for prefills."""
    patch(monkeypatch, "harness.toggle.support", "ATTENTION_BACKENDS", ("triton",))
    server_args = importlib.import_module("sglang.srt.server_args").ServerArgs
    finish = server_args.__post_init__

    def for_prefills(self: Any) -> None:
        finish(self)
        self.prefill_attention_backend = "flashinfer"

    monkeypatch.setattr(server_args, "__post_init__", for_prefills)
    with caplog.at_level(logging.WARNING, "harness.toggle"):
        Engine(WARM.model_copy(update={"graphs": ()}), device).close()
    assert caplog.messages == ["The toggle wasn't tested with attention backend flashinfer."]
