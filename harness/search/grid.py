"""The engine configurations that are searched: a spread of what SGLang accepts, never the whole product.

For each worker every two values of different dimensions that go together occur together in some configuration. The
first few are the ordinary ones; each next one brings as many pairs as it can that no earlier one has.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import chain, combinations, product, zip_longest
from typing import Any

from harness.configuration import DEFAULT_SETTING, EngineConfig, Strategy, Toggle, Worker
from harness.limits import a_step, whole_pages
from harness.patches.stack import UNCHANGED, Patch
from harness.search.upstream import listed_tokens

Row = dict[str, Any]
"""A value for each dimension, or for some of them."""
Pair = tuple[tuple[str, Any], tuple[str, Any]]
Dimensions = Mapping[str, Sequence[Any]]

CHUNK = 16
SHORT_CONTEXT = 96
NEW = 10
"""Tokens of the shortest prompt and its first output."""
MANY = 8
"""A threshold that a tight pool seldom has room to cross."""
LEAST_EACH = 18
"""KV slots for each of so many requests in a tight pool, at least: less would hold too few for anything to cross."""
LEAST_LISTED = 48
"""Tokens that a request must be able to have: with fewer programs would be all alike."""
SEEDS_TRIED = 3
"""Pairs from which a next row is tried to be made."""

BOTH: Dimensions = {
    "threshold": (2, 1, 3, 5, 8),
    "page_size": (1, 4, 16, 64),
    "graphs": ((1, 2, 4, 8), (2, 4), (), (1, 2, 4, 8, 16)),
    "steps": (3, 7, 1),
    "chunks": (None, "small", "draft"),
    "pool": ("ample", "tight"),
    "context_length": (512, SHORT_CONTEXT),
    "radix_cache": (True, False),
    "hysteresis": (0, 1),
    "dtype": ("float32", "bfloat16"),
}
"""The ordinary value first. `chunks`: of a page at least, or exactly as many tokens as a spec step verifies at topk 1;
`pool`: KV memory for all, or so little that requests are retracted."""
OF_STRATEGY: Mapping[Strategy, Dimensions] = {"warm": {}, "plain": {"kept_tokens": (None, 2, 5)}}
"""`kept_tokens`: as many as a plain stretch is long, or so few that the draft catches up within it."""
TOPK: Mapping[Worker, Sequence[int]] = {Worker.V1: (4, 1, 2, 8), Worker.V2: (1,)}
BACKENDS = ("triton", "flashinfer")

CONSTRAINED = (
    "backend",
    "topk",
    "page_size",
    "graphs",
    "steps",
    "chunks",
    "pool",
    "context_length",
    "dtype",
    "threshold",
    "hysteresis",
)
"""Dimensions whose values don't all go together (`_accepted`)."""

ORDINARY: tuple[Row, ...] = ({}, {"topk": 1, "graphs": (2, 4), "threshold": 3, "page_size": 4})
"""What the first configurations of a worker differ in from the first value of every dimension."""


@lru_cache
def grid(
    worker: Worker | None = None,
    patch: Patch = UNCHANGED,
    threshold_setting: str = DEFAULT_SETTING,
    strategy: Strategy = "warm",
) -> tuple[EngineConfig, ...]:
    """The configurations in the order in which they are searched; of one worker only if asked."""
    if worker is None:
        turns = zip_longest(*(grid(each, patch, threshold_setting, strategy) for each in (Worker.V1, Worker.V2)))
        return tuple(config for config in chain.from_iterable(turns) if config is not None)
    dimensions = {"backend": BACKENDS, "topk": TOPK[worker], **BOTH, **OF_STRATEGY[strategy]}
    rows = _covering(dimensions)
    return tuple(dict.fromkeys(_configuration(worker, row, patch, threshold_setting, strategy) for row in rows))


def _covering(dimensions: Dimensions) -> Iterator[Row]:
    """The ordinary rows, then rows until every pair of values that go together has occurred."""
    ordinary = {name: values[0] for name, values in dimensions.items()}
    missing = dict.fromkeys(_all_pairs(dimensions))
    used: Counter[tuple[str, Any]] = Counter()
    rows = ({**ordinary, **changes} for changes in ORDINARY)
    while missing:
        row = next(rows, None) or _next_row(dimensions, missing, used)
        used.update(row.items())
        for pair in _pairs(row):
            missing.pop(pair, None)
        yield row


def _next_row(dimensions: Dimensions, missing: Mapping[Pair, None], used: Counter[tuple[str, Any]]) -> Row:
    """The row that brings most missing pairs, of those tried; of equals the one with the least used values."""
    seeds = list(missing)[:: max(1, len(missing) // SEEDS_TRIED)]
    rows = [_row_for(seed, dimensions, missing, used) for seed in seeds]
    return max(rows, key=lambda row: (sum(pair in missing for pair in _pairs(row)), -sum(used[v] for v in row.items())))


def _row_for(seed: Pair, dimensions: Dimensions, missing: Mapping[Pair, None], used: Counter[tuple[str, Any]]) -> Row:
    """A row with this pair, its other values chosen one by one."""
    row: Row = dict(seed)
    for name, values in dimensions.items():
        if name in row:
            continue

        def gain(value: Any, name: str = name) -> tuple[int, int]:
            new = sum(_pair((name, value), chosen) in missing for chosen in row.items())
            return new, -used[name, value] if new else 0

        row[name] = max((value for value in values if _go_together({**row, name: value}, dimensions)), key=gain)
    return {name: row[name] for name in dimensions}


def _all_pairs(dimensions: Dimensions) -> Iterator[Pair]:
    for one, other in combinations(dimensions, 2):
        for pair in (((one, a), (other, b)) for a in dimensions[one] for b in dimensions[other]):
            if _go_together(dict(pair), dimensions):
                yield _pair(*pair)


def _pairs(row: Row) -> Iterator[Pair]:
    return (_pair(one, other) for one, other in combinations(row.items(), 2))


def _pair(one: tuple[str, Any], other: tuple[str, Any]) -> Pair:
    return (one, other) if one[0] < other[0] else (other, one)


def _go_together(row: Row, dimensions: Dimensions) -> bool:
    """Whether some choice of the values that aren't in the row yet makes it one that SGLang takes."""
    return _possible(tuple((row[name],) if name in row else tuple(dimensions[name]) for name in CONSTRAINED))


@cache
def _possible(values: tuple[tuple[Any, ...], ...]) -> bool:
    return any(_accepted(**dict(zip(CONSTRAINED, chosen, strict=True))) for chosen in product(*values))


def _accepted(
    backend: str,
    topk: int,
    page_size: int,
    graphs: tuple[int, ...],
    steps: int,
    chunks: str | None,
    pool: str,
    context_length: int,
    dtype: str,
    threshold: int,
    hysteresis: int,
) -> bool:
    """What SGLang takes, and `EngineConfig`, and what programs can cross, and keep off its own errors."""
    if topk > 1 and page_size > 1 and backend != "flashinfer":
        return False
    if backend == "flashinfer" and dtype == "float32":
        return False
    room = listed_tokens(backend, topk, steps, graphs, context_length, threshold)
    if room is not None and room < LEAST_LISTED:
        return False
    if chunks == "draft" and (steps == 1 or (steps + 1) % page_size):  # too small, or not of whole pages
        return False
    return hysteresis < threshold and (pool == "ample" or threshold < MANY)


def _configuration(worker: Worker, row: Row, patch: Patch, threshold_setting: str, strategy: Strategy) -> EngineConfig:
    threshold, graphs = row["threshold"], row["graphs"]
    toggle = Toggle(
        threshold=threshold, hysteresis=row["hysteresis"], strategy=strategy, kept_tokens=row.get("kept_tokens")
    )
    chunk = {None: None, "small": max(CHUNK, row["page_size"]), "draft": row["steps"] + 1}[row["chunks"]]
    config = EngineConfig(
        worker=worker,
        topk=row["topk"],
        steps=row["steps"],
        page_size=row["page_size"],
        attention_backend=row["backend"],
        dtype=row["dtype"],
        graphs=graphs,
        max_running_requests=max(threshold, *graphs, 4) + 2,
        context_length=row["context_length"],
        chunked_prefill_size=chunk,
        radix_cache=row["radix_cache"],
        toggle=toggle,
        patch=patch,
        threshold_setting=threshold_setting,
    )
    least = _least_pool(config)
    return config.model_copy(update={"kv_tokens": least if row["pool"] == "tight" else max(least, config.kv_tokens)})


def _least_pool(config: EngineConfig) -> int:
    """KV slots for two requests more than the threshold, as long as they are new: with less nothing would cross it."""
    assert config.toggle is not None
    page = config.page_size
    ahead = a_step(config) * (2 if config.worker is Worker.V2 else 1)
    each = whole_pages(NEW, page) + whole_pages(ahead, page)
    return (config.toggle.threshold + 2) * max(each, LEAST_EACH) + page
