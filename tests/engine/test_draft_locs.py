"""Steps that SGLang itself drafts in the wrong slots are excused, and no others: cases/upstream/v1-draft-locs-race."""

import importlib
from collections.abc import Callable
from typing import Any

import pytest

from harness.checks import CheckFailed, Checks
from harness.checks.draft import MISDRAFTED, WITHOUT_DRAFT
from harness.configuration import EngineConfig
from harness.engine.engine import Engine
from harness.program import Drain, Program, Submit
from harness.prompts import Prompt

CONFIG = EngineConfig(topk=2, page_size=64, attention_backend="flashinfer", dtype="bfloat16", graphs=(2, 4))
PROGRAM = Program(
    config=CONFIG,
    operations=(Submit(count=2, prompt=Prompt(period=95, seed=6, length=102), max_new_tokens=16), Drain()),
)
WITHOUT_GRAPHS = PROGRAM.model_copy(update={"config": CONFIG.model_copy(update={"graphs": ()})})
WORKER, KERNEL = "sglang.srt.speculative.eagle_worker", "assign_draft_cache_locs"


class Hasty:
    """Launched as the kernel is; once some threads read what others haven't written yet."""

    def __init__(self, kernel: Any, held: Callable[..., Any], at: int) -> None:
        self._kernel, self._held, self._at, self._launches = kernel, held, at, 0

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
        def launch(*args: Any) -> None:
            self._kernel[grid](*args)
            self._launches += 1
            if self._launches == self._at:
                args[5][: len(args[0]) * CONFIG.topk * CONFIG.steps] = self._held(*args)

        return launch


def padding(*_: Any) -> int:
    return 0


def others(rows: Any, table: Any, *_: Any) -> Any:
    """Slots of the second request in which its draft looks for what comes next, a period before."""
    return table[rows[1], 8 : 8 + len(rows) * CONFIG.topk * CONFIG.steps]


@pytest.fixture
def hasty(boot: Callable[[EngineConfig], Engine], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Engine]:
    """An engine of which launch `at` gives `held` to draft in."""

    def booted(config: EngineConfig, held: Callable[..., Any], at: int) -> Engine:
        engine = boot(config)
        worker = importlib.import_module(WORKER)
        monkeypatch.setattr(worker, KERNEL, Hasty(getattr(worker, KERNEL), held, at))
        return engine

    return booted


@pytest.mark.parametrize(
    ("program", "held", "at", "also"), [(PROGRAM, padding, 1, set()), (WITHOUT_GRAPHS, others, 2, {WITHOUT_DRAFT})]
)
def test_a_draft_in_the_wrong_slots_is_excused(
    hasty: Callable[..., Engine], program: Program, held: Callable[..., Any], at: int, also: set[str]
) -> None:
    """For that step, and for as long as a request holds what it wrote to."""
    checks = Checks(program)
    hasty(program.config, held, at).run(program, checks=checks)
    assert {MISDRAFTED} | also <= {reason for _, reason in checks.skipped}


def test_and_shows_where_it_is_not(hasty: Callable[..., Engine]) -> None:
    with pytest.raises(CheckFailed, match="draft tokens accepted after 1 tokens of request 0 is 1, must be 3"):
        hasty(CONFIG, padding, 1).run(PROGRAM, checks=Checks(PROGRAM, excuse_sglang=False))


def test_right_slots_excuse_nothing(boot: Callable[[EngineConfig], Engine]) -> None:
    checks = Checks(PROGRAM)
    boot(CONFIG).run(PROGRAM, checks=checks)
    assert MISDRAFTED not in {reason for _, reason in checks.skipped}
