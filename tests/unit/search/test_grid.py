"""The configurations that are searched are many enough to be spread, and few enough to be run."""

from collections.abc import Callable
from itertools import combinations

import pytest

from harness.configuration import EngineConfig, Worker
from harness.limits import a_step, check_program
from harness.program import Program, Submit
from harness.search.grid import grid

VALUES: dict[str, Callable[[EngineConfig], object]] = {
    "topk": lambda config: config.topk,
    "steps": lambda config: config.steps,
    "page": lambda config: config.page_size,
    "graphs": lambda config: config.graphs,
    "chunked": lambda config: config.chunked_prefill_size is not None,
    "radix": lambda config: config.radix_cache,
    "backend": lambda config: config.attention_backend,
    "dtype": lambda config: config.dtype,
    "tight": lambda config: config.kv_tokens < 4096,
    "context": lambda config: config.context_length,
    "threshold": lambda config: config.toggle and config.toggle.threshold,
    "hysteresis": lambda config: config.toggle and config.toggle.hysteresis,
}


def test_size_and_order() -> None:
    configs = grid()
    assert 40 <= len(configs) <= 60
    assert len(set(configs)) == len(configs)
    assert configs == grid()
    assert [config.worker for config in configs[:6]] == [Worker.V1, Worker.V2] * 3
    assert configs[0] == EngineConfig(
        graphs=(1, 2, 4, 8), max_running_requests=10, toggle=configs[0].toggle, kv_tokens=4096
    )


def test_each_can_cross_its_threshold_both_ways() -> None:
    for config in grid():
        assert config.toggle is not None
        assert config.max_running_requests > config.toggle.threshold
        assert config.kv_tokens >= (config.toggle.threshold + 1) * a_step(config)
        check_program(Program(config=config, operations=(Submit(),)))


@pytest.mark.parametrize("worker", [Worker.V1, Worker.V2])
def test_values_meet_in_pairs(worker: Worker) -> None:
    configs = grid(worker)
    assert {config.worker for config in configs} == {worker}
    wanted = {name: {value(config) for config in configs} for name, value in VALUES.items()}
    assert wanted["page"] == {1, 4, 16, 64}
    assert wanted["steps"] == {1, 3, 7}
    assert wanted["topk"] == ({1, 2, 4, 8} if worker is Worker.V1 else {1})
    for one, other in combinations(VALUES, 2):
        met = {(VALUES[one](config), VALUES[other](config)) for config in configs}
        apart = {(a, b) for a in wanted[one] for b in wanted[other]} - met
        impossible = {
            ("backend", "dtype"): lambda backend, dtype: backend == "flashinfer" and dtype == "float32",
            ("tight", "threshold"): lambda tight, threshold: tight and threshold == 8,
            ("threshold", "hysteresis"): lambda threshold, hysteresis: hysteresis >= threshold,
        }.get((one, other), lambda *_: False)
        assert {pair for pair in apart if not impossible(*pair)} == set(), (one, other)


def test_strategy_plain_is_searched_with_long_and_short_memories() -> None:
    toggles = [config.toggle for config in grid(strategy="plain")]
    assert {toggle and toggle.strategy for toggle in toggles} == {"plain"}
    assert {toggle and toggle.kept_tokens for toggle in toggles} == {None, 2, 5}
    assert 40 <= len(toggles) <= 70


def test_thresholds_below_at_and_above_captured_sizes() -> None:
    places = set()
    for config in grid():
        if config.graphs and config.toggle:
            threshold, largest = config.toggle.threshold, config.graphs[-1]
            places.add("above" if threshold > largest else "at" if threshold == largest else "below")
            places.add("a captured size" if threshold in config.graphs else "between captured sizes")
    assert places == {"above", "at", "below", "a captured size", "between captured sizes"}


def test_pages_of_several_tokens_with_topk_are_flashinfers() -> None:
    wide = [config for config in grid() if config.topk > 1 and config.page_size > 1]
    assert wide
    assert {config.attention_backend for config in wide} == {"flashinfer"}


def test_the_patch_under_test_is_in_each() -> None:
    assert {config.patch for config in grid(Worker.V2, "attempt-1")} == {"attempt-1"}
