"""Hypothesis strategies for programs over the whole alphabet of `shared/design.md`, most of which cross the threshold.

A program is drawn as moves (`harness.search.moves`), independent of each other, and steered (`harness.search.steering`)
by a model of the batch. What is simplest comes first everywhere, so that shrinking ends at few operations, small
counts and `program.DEFAULT_PROMPT`.
"""

from collections.abc import Sequence
from functools import lru_cache

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from harness.configuration import EngineConfig
from harness.program import Operation, Program
from harness.search.moves import Chunks, End, Ending, Kind, Move, Shape
from harness.search.steering import steer

MOST_MOVES = 7
LEAST_MOVES = (0, *[4] * 14, *[5] * 5)
"""One of them is drawn first. Shrinking takes the first, and from then on may delete any move."""

KINDS = (
    Kind.WAIT,
    *[Kind.SUBMIT] * 2,
    *[Kind.CROSS] * 6,
    *[Kind.CROSS_WAITING] * 5,
    *[Kind.CROSS_WIDELY] * 2,
    Kind.CROSS_FULLY,
    Kind.ABORT,
    Kind.RETRACT,
    Kind.RETRACT_AT_END,
    Kind.FLUSH,
    Kind.DRAIN,
)
"""As often as each is wanted."""

CLOSING = (Kind.WAIT, *[Kind.CLOSE] * 15)
CLOSING_MOVES = 2
"""One up and one down, where the moves before haven't crossed both ways."""
ENDINGS = (Ending.NOTHING, *[Ending.DRAIN] * 16, *[Ending.FLUSH] * 7)

NEW_TOKENS = (8, *range(1, 8), *range(9, 17), 20, 24, 32)
LONG = (8, 12, 16, 24, 32)
PERIODS = (7, 4, 5, 9, 12, 20)
SHORT_CONTEXT = 128
"""Context length up to which its end is reached by short prompts."""
EXTRA = (0, 1, 2, 3, 5, 8, 13, 21)


@lru_cache(maxsize=256)
def operations(config: EngineConfig) -> SearchStrategy[tuple[Operation, ...]]:
    """Operations that the configuration can run, steered to cross its threshold both ways."""
    return st.tuples(_moves(config), st.sampled_from(ENDINGS)).map(lambda drawn: steer(config, *drawn))


def programs(configs: SearchStrategy[EngineConfig] | EngineConfig) -> SearchStrategy[Program]:
    """Programs of one configuration, or of any that a strategy draws."""
    chosen = st.just(configs) if isinstance(configs, EngineConfig) else configs
    return chosen.flatmap(lambda config: operations(config).map(lambda drawn: Program(config=config, operations=drawn)))


def configurations(grid: Sequence[EngineConfig]) -> SearchStrategy[EngineConfig]:
    """One of `harness.search.grid`'s, the first being the simplest."""
    return st.sampled_from(grid)


@st.composite
def _moves(draw: st.DrawFn, config: EngineConfig) -> list[Move]:
    least = draw(st.sampled_from(LEAST_MOVES))
    moves, closing = _move_lists(config)[least]
    return [*draw(moves), *draw(closing)]


@lru_cache(maxsize=256)
def _move_lists(config: EngineConfig) -> dict[int, tuple[SearchStrategy[list[Move]], SearchStrategy[list[Move]]]]:
    """The moves of a program, and those that close it, where it has at least so many."""
    move, close = _move(config, KINDS), _move(config, CLOSING)
    return {
        least: (
            st.lists(move, min_size=least, max_size=MOST_MOVES),
            st.lists(close, min_size=CLOSING_MOVES if least else 0, max_size=CLOSING_MOVES + 1),
        )
        for least in LEAST_MOVES
    }


def _move(config: EngineConfig, kinds: Sequence[Kind]) -> SearchStrategy[Move]:
    kind, amount, pause = st.sampled_from(kinds), st.integers(0, 127), st.integers(0, 95)
    return st.builds(Move, kind=kind, amount=amount, pause=pause, shape=_shapes(config))


def _shapes(config: EngineConfig) -> SearchStrategy[Shape]:
    seeds, tokens, early = st.integers(0, 7), st.sampled_from(NEW_TOKENS), st.integers(0, 15)
    periods, extra = st.sampled_from(PERIODS), st.sampled_from(EXTRA)
    long = st.builds(Shape, period=st.integers(60, 128), seed=seeds, extra=extra, new_tokens=tokens)
    ending = [
        st.builds(Shape, seed=seeds, new_tokens=tokens, end=st.just(end), end_at=early)
        for end in (End.STOP_TOKEN, End.END_OF_SEQUENCE)
    ]
    context = st.builds(Shape, seed=seeds, extra=extra, end=st.just(End.CONTEXT))
    chunks = st.sampled_from((Chunks.EXACT, Chunks.DRAFT))
    chunked = st.builds(Shape, period=periods, seed=seeds, extra=extra, new_tokens=tokens, chunks=chunks)
    return _weighted(
        (2, st.just(Shape())),
        (4, st.builds(Shape, seed=seeds, new_tokens=tokens)),
        (3, st.builds(Shape, period=periods, seed=seeds, extra=extra, new_tokens=tokens)),
        (3, _sampled()),
        *((3, end) for end in ending),
        (1, long),
        (1 if config.context_length > SHORT_CONTEXT else 3, context),
        (0 if config.chunked_prefill_size is None else 5, chunked),
    )


def _sampled() -> SearchStrategy[Shape]:
    """Requests that are sampled, penalised, or asked for logprobs."""
    tokens = st.sampled_from(LONG)
    return st.one_of(
        st.builds(Shape, new_tokens=tokens, logprobs=st.just(True)),
        st.builds(Shape, new_tokens=tokens, temperature=st.sampled_from((0.5, 1.0, 50.0)), logprobs=st.booleans()),
        st.builds(Shape, new_tokens=tokens, frequency_penalty=st.sampled_from((1.0, 2.0, -1.0))),
    )


def _weighted(*choices: tuple[int, SearchStrategy[Shape]]) -> SearchStrategy[Shape]:
    """One of them, as often as its weight says; the first is the simplest."""
    return st.sampled_from([choice for weight, choice in choices for _ in range(weight)]).flatmap(lambda choice: choice)
