"""Each label on a run that has it and on one that nearly has."""

from collections.abc import Mapping
from typing import Any

import pytest

from harness.configuration import EngineConfig, Toggle
from harness.program import Retract, Submit
from harness.prompts import Prompt
from harness.search.labels import ALPHABET, CROSSINGS, MEANINGS, labels
from harness.trace import TraceStep
from tests.unit.search.runs import V1, V2, run

Run = tuple[tuple[str, ...], Mapping[str, Any]]


def steps(*texts: str, **more: Any) -> Run:
    return texts, more


HELD = V1.model_copy(update={"toggle": Toggle(threshold=3, hysteresis=1)})
AT_3 = V1.model_copy(update={"toggle": Toggle(threshold=3)})
CHUNKED = V1.model_copy(update={"chunked_prefill_size": 4})
SHORT = V1.model_copy(update={"context_length": 16})
STOP = Submit(stop_token=5, max_new_tokens=40)
RETRACTED = ("s 0 1", "s 0", "E 1", "s 0 1")
"""Request 1 is sent back after the first step and comes again."""

CASES: dict[str, tuple[Run, Run]] = {
    "switched off": (steps("s 0", "E 1 2", "p 0 1 2"), steps("p 0 1 2", "s 0")),
    "switched on": (steps("p 0 1 2", "i", "s 0"), steps("s 0", "p 0 1 2")),
    "switched off, requests going on": (steps("s 0", "p 0 1 2"), steps("s 0", "p 1 2 3")),
    "switched on, requests going on": (steps("p 0 1 2", "s 0"), steps("p 0 1 2", "s 3")),
    "switched off within a captured size": (
        steps("s 0 1 2 pad=4", "p 0 1 2 3 pad=4", config=AT_3),
        steps("s 0 1 pad=2", "p 0 1 2 pad=4"),
    ),
    "switched on within a captured size": (
        steps("p 0 1 2 3 pad=4", "s 0 1 2 pad=4", config=AT_3),
        steps("p 0 1 2 3 4", "s 0 1 2", config=AT_3),
    ),
    "off for one step": (steps("s 0", "p 0 1 2", "s 0"), steps("s 0", "p 0 1 2", "p 0 1 2", "s 0")),
    "on for one step": (steps("p 0 1 2", "s 0", "p 0 1 2"), steps("p 0 1 2", "s 0", "s 0", "p 0 1 2")),
    "switched on by an end": (
        steps("p 0 1 2", "s 0 1", ends={2: "length"}),
        steps("p 0 1 2", "p 0 1 2", "s 0 1", ends={2: "abort"}),
    ),
    "switched on by an abort": (
        steps("p 0 1 2", "s 0 1", ends={2: "abort"}),
        steps("p 0 1 2", "s 0 1", ends={2: "length"}),
    ),
    "switched on by a retraction": (
        steps("p 0 1 2", "s 0 1", "E 2", "p 0 1 2", retracted=[2]),
        steps("p 0 1 2", "s 0 1", ends={2: "length"}),
    ),
    "switched off by a request that came back": (
        steps("p 0 1 2", "s 0 1", "E 2", "p 0 1 2", retracted=[2]),
        steps("E 0 1", "s 0 1", "E 2", "p 0 1 2"),
    ),
    "held by hysteresis": (
        steps("p 0 1 2 3", "p 0 1 2", "s 0 1", config=HELD),
        steps("p 0 1 2 3", "s 0 1 2", config=AT_3),
    ),
    "joined during plain steps": (steps("p 0 1 2", "E 3", "p 0 1 2 3"), steps("p 0 1 2", "E 3 4 5", "p 3 4 5")),
    "joined during spec steps": (steps("s 0", "E 1", "s 0 1"), steps("s 0 1", "s 0")),
    "1 -> 0 -> 1": (steps("s 0", "i", "E 1", "s 1"), steps("s 0", "s 0")),
    "between captured sizes": (steps("s 0 1 2 pad=4", config=AT_3), steps("s 0 1 pad=2")),
    "padded across the threshold": (steps("s 0 1 2 pad=4", config=AT_3), steps("p 0 1 2 pad=4")),
    "largest captured size": (steps("p 0 1 2 3 pad=4"), steps("p 0 1 2 pad=4")),
    "one more than the largest captured size": (steps("p 0 1 2 3 4"), steps("p 0 1 2 3 pad=4")),
    "as many as may run": (steps("p 0 1 2 3 4 5 wait=1"), steps("p 0 1 2 3 4 5")),
    "ended inside an accepted run: stop token": (
        steps("s 0*2", ends={0: "stop token"}, submit=STOP),
        steps("s 0", ends={0: "stop token"}, submit=STOP),
    ),
    "ended inside an accepted run: end of sequence": (
        steps("s 0 a0=2", ends={0: "end of sequence"}, submit=STOP),
        steps("s 0*2", ends={0: "stop token"}, submit=STOP),
    ),
    "ended inside an accepted run: length": (
        steps("s 0*3", ends={0: "length"}),
        steps("s 0*3", "p 0", ends={0: "length"}),
    ),
    "ended in a plain step: stop token": (
        steps("p 0 1 2", ends={0: "stop token"}, submit=STOP),
        steps("p 0 1 2", ends={0: "length"}),
    ),
    "ended in a plain step: end of sequence": (
        steps("p 0 1 2", ends={0: "end of sequence"}),
        steps("p 0 1 2", ends={0: "stop token"}, submit=STOP),
    ),
    "ended in a plain step: length": (steps("p 0 1 2", ends={0: "length"}), steps("s 0*2", ends={0: "length"})),
    "ended by its prefill": (steps("E 0", ends={0: "length"}), steps("E 0", "s 0", ends={0: "length"})),
    "two ended in one step": (
        steps("s 0 1", ends={0: "length", 1: "length"}),
        steps("s 0 1", "s 1", ends={0: "length", 1: "length"}),
    ),
    "ended in a spec step before one that goes on": (
        steps("s 0 1", "s 1", ends={0: "length"}),
        steps("s 0 1", "s 0", ends={1: "length"}),
    ),
    "ended in a plain step before one that goes on": (
        steps("p 0 1 2", "s 1 2", ends={0: "length"}),
        steps("p 0 1 2", "s 0 1", ends={2: "length"}),
    ),
    "context limit": (
        steps("E 0", "s 0*4", ends={0: "length"}, config=SHORT),
        steps("E 0", "s 0*3", ends={0: "length"}, config=SHORT),
    ),
    "abort of a waiting request": (steps("s 0", ends={1: "abort"}), steps("E 1", "s 0", ends={1: "abort"})),
    "abort within a prefill": (
        steps("E 0*0 in=4", "E 0", "i", ends={0: "abort"}, config=CHUNKED),
        steps("E 0", "s 0", ends={0: "abort"}),
    ),
    "abort of a running request": (steps("E 0", "s 0", ends={0: "abort"}), steps("E 0", ends={0: "abort"})),
    "abort with a result in flight": (
        steps("s 0", "s 0*0", ends={0: "abort"}, config=V2),
        steps("s 0", "s 0", ends={0: "abort"}, config=V2),
    ),
    "retraction": (steps(*RETRACTED, retracted=[1]), steps("s 0 1", "E 2", "s 0 1 2")),
    "retraction for lack of memory": (
        steps(*RETRACTED, retracted=[1]),
        steps(*RETRACTED, retracted=[1], operations=[Retract()]),
    ),
    "several retracted at once": (
        steps("p 0 1 2", "s 0", "E 1 2", "p 0 1 2", retracted=[1, 2]),
        steps("p 0 1 2", "s 0 1", "s 0", "E 1 2", "p 0 1 2", retracted=[1, 2]),
    ),
    "retracted right after another ended": (
        steps("s 0 1 2", "s 0", "E 2", "s 0 2", retracted=[2], ends={1: "length"}),
        steps(*RETRACTED, retracted=[1]),
    ),
    "retracted with a result in flight": (
        steps("s 0 1*0", "s 0", "E 1", "s 0 1", retracted=[1], config=V2),
        steps(*RETRACTED, retracted=[1], config=V2),
    ),
    "retracted with its end in flight": (
        steps("s 0 1", "s 0 1*0 a1=2", "s 0", "E 1", "s 0 1*2", retracted=[1], ends={1: "length"}, config=V2),
        steps("s 0 1", "s 0 1*0", "s 0", "E 1", "s 0 1*2", retracted=[1], ends={1: "length"}, config=V2),
    ),
    "prefix cache hit": (steps("E 0 in=9", "s 0", "E 1 in=1", "s 0 1"), steps("E 0 1", "s 0 1")),
    "chunked prefill": (steps("E 0*0 in=4", "E 0 in=5", config=CHUNKED), steps("E 0", "s 0", config=CHUNKED)),
    "chunk of K+1 tokens": (
        steps("E 0*0 in=4", "E 0 in=5", config=CHUNKED),
        steps("E 0*0 in=6", "E 0 in=3", config=CHUNKED),
    ),
    "chunk boundary in output that is prefilled again": (
        steps("s 0*4 1*4", "s 0", "E 1*0 in=12", "E 1 in=1", retracted=[1], config=CHUNKED),
        steps("s 0*4 1*4", "s 0", "E 1*0 in=8", "E 1 in=5", retracted=[1], config=CHUNKED),
    ),
    "row recycled": (
        steps("E 0 1 2 3 4 5", "p 0 1 2 3 4 5", "s 0 1", "E 2 3 4", retracted=[2, 3, 4]),
        steps("E 0 1 2", "p 0 1 2", "s 0 1", "E 3", "p 0 1 3"),
    ),
    "row recycled at once": (
        steps("E 0 1 2 3 4 5", "p 0 1 2 3 4 5", "p 0 1 2 3 4", "E 5", retracted=[5]),
        steps("E 0 1 2 3 4 5", "p 0 1 2 3 4 5", "s 0", "s 0", "s 0", "E 5", retracted=[5]),
    ),
    "waited for room": (steps("s 0 1 wait=1"), steps("E 0 1 wait=1", "s 0 1")),
    "drawn tokens": (steps("s 0", submit=Submit(temperature=0.5)), steps("E 0", submit=Submit(temperature=0.5))),
    "drawn tokens in both modes": (
        steps("s 0", "p 0 1 2", submit=Submit(temperature=0.5)),
        steps("s 0", "p 1 2 3", submit=Submit(temperature=0.5)),
    ),
    "penalty": (steps("p 0 1 2", submit=Submit(frequency_penalty=1.0)), steps("p 0 1 2")),
    "penalty in both modes": (
        steps("s 0", "p 0 1 2", submit=Submit(frequency_penalty=1.0)),
        steps("s 0", "s 0", submit=Submit(frequency_penalty=1.0)),
    ),
    "logprobs": (steps("s 0", submit=Submit(logprobs=True)), steps("s 0")),
    "logprobs in both modes": (
        steps("s 0", "p 0 1 2", submit=Submit(logprobs=True)),
        steps("p 0 1 2", submit=Submit(logprobs=True)),
    ),
    "flush granted": (steps(flushes=[True]), steps(flushes=[False])),
    "flush refused": (steps(flushes=[True, False]), steps(flushes=[True])),
    "stopped with work pending": (steps("s 0", idle=False), steps("s 0")),
}


@pytest.mark.parametrize("label", ALPHABET)
def test_label(label: str) -> None:
    (has, more), (has_not, other) = CASES[label]
    assert labels(*run(*has, **more))[label] > 0
    assert labels(*run(*has_not, **other))[label] == 0


def test_every_label_has_a_meaning_and_crossings_are_labels() -> None:
    assert CASES.keys() == MEANINGS.keys() == set(ALPHABET)
    assert set(CROSSINGS) <= set(ALPHABET)


def test_labels_are_counted() -> None:
    counted = labels(*run("s 0", "p 0 1 2", "s 0", "p 0 1 2"))
    assert (counted["switched off"], counted["switched on"]) == (2, 1)


def test_a_trace_that_stopped_early_and_an_empty_one() -> None:
    program, trace = run("E 0 1", "s 0 1", idle=False)
    trace.steps.append(TraceStep(2, "TARGET_VERIFY", (0, 1), tokens_in=32, processed=False))
    assert labels(program, trace) == {"stopped with work pending": 1}
    assert labels(*run(idle=False)) == {"stopped with work pending": 1}


def test_a_prompt_of_chunks_is_no_retraction() -> None:
    long = Submit(prompt=Prompt(period=7, seed=0, length=12))
    found = labels(*run("E 0*0 in=4", "E 0*0 in=4", "E 0 in=4", "s 0", submit=long, config=CHUNKED))
    assert found == {"chunked prefill": 1, "chunk of K+1 tokens": 3}


def test_without_a_toggle_or_graphs_nothing_is_said_of_them() -> None:
    bare = EngineConfig(graphs=(), max_running_requests=6)
    assert labels(*run("s 0 1 2", "s 0 1", config=bare)) == {}
