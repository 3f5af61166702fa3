"""Steps that SGLang itself drafts in the wrong slots are excused, and no others: cases/upstream/v1-draft-locs-race."""

import importlib
from collections.abc import Callable
from typing import Any

import pytest

from harness.checks import CheckFailed, Checks
from harness.checks.draft import MISDRAFTED
from harness.configuration import EngineConfig
from harness.engine.engine import Engine
from harness.program import Drain, Program, Submit
from harness.prompts import Prompt

CONFIG = EngineConfig(topk=2, page_size=64, attention_backend="flashinfer", dtype="bfloat16", graphs=(2, 4))
PROGRAM = Program(
    config=CONFIG,
    operations=(Submit(count=2, prompt=Prompt(period=95, seed=6, length=102), max_new_tokens=16), Drain()),
)
WORKER, KERNEL = "sglang.srt.speculative.eagle_worker", "assign_draft_cache_locs"


class Hasty:
    """Launched as the kernel is; the first time some threads read what others haven't written yet."""

    def __init__(self, kernel: Any) -> None:
        self._kernel, self._launches = kernel, 0

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
        def launch(*args: Any) -> None:
            self._kernel[grid](*args)
            self._launches += 1
            if self._launches == 1:
                args[5][: len(args[0]) * CONFIG.topk * CONFIG.steps] = 0

        return launch


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch, boot: Callable[[EngineConfig], Engine]) -> Engine:
    engine = boot(CONFIG)
    worker = importlib.import_module(WORKER)
    monkeypatch.setattr(worker, KERNEL, Hasty(getattr(worker, KERNEL)))
    return engine


def test_a_draft_in_the_wrong_slots_is_excused(hasty: Engine) -> None:
    checks = Checks(PROGRAM)
    hasty.run(PROGRAM, checks=checks)
    assert MISDRAFTED in {reason for _, reason in checks.skipped}


def test_and_shows_where_it_is_not(hasty: Engine) -> None:
    with pytest.raises(CheckFailed, match="draft tokens accepted after 1 tokens of request 0 is 1, must be 3"):
        hasty.run(PROGRAM, checks=Checks(PROGRAM, excuse_sglang=False))


def test_right_slots_excuse_nothing(boot: Callable[[EngineConfig], Engine]) -> None:
    checks = Checks(PROGRAM)
    boot(CONFIG).run(PROGRAM, checks=checks)
    assert MISDRAFTED not in {reason for _, reason in checks.skipped}
