"""What a run reached, by name, and how often: judged from its program and its trace alone.

A run that reached none of `CROSSINGS` proves nothing about a toggle.
"""

from collections import Counter
from itertools import chain

from harness.program import Program
from harness.search.batch_labels import of_batches
from harness.search.course import courses
from harness.search.prefill_labels import of_prefills
from harness.search.request_labels import of_requests
from harness.trace import Trace

CROSSINGS = ("switched off", "switched on")

MEANINGS = {
    "switched off": "a plain step after a spec step; prefills between don't matter",
    "switched on": "a spec step after a plain step",
    "switched off, requests going on": "some request took part in both",
    "switched on, requests going on": "some request took part in both",
    "switched off within a captured size": "both steps replayed graphs of one size, so that the padded batch stayed",
    "switched on within a captured size": "both steps replayed graphs of one size",
    "off for one step": "a spec step, a plain step, a spec step",
    "on for one step": "a plain step, a spec step, a plain step",
    "switched on by an end": "a request that ended left the batch between",
    "switched on by an abort": "an aborted request left the batch between",
    "switched on by a retraction": "a retracted request left the batch between",
    "switched off by a request that came back": "a retracted request joined the batch between",
    "held by hysteresis": "a plain step at or below the threshold, but not yet at threshold - hysteresis",
    "joined during plain steps": "a request came to others that had a plain step before, and go on",
    "joined during spec steps": "a request came to others that had a spec step before, and go on",
    "1 -> 0 -> 1": "a decode batch of one request, then one of one other",
    "between captured sizes": "a decode step padded to a captured size",
    "padded across the threshold": "a spec step at or below the threshold, padded to a captured size above",
    "largest captured size": "a decode step of that size",
    "one more than the largest captured size": "a decode step of that size, which no graph fits",
    "as many as may run": "a decode step of max_running_requests, with more waiting",
    "ended inside an accepted run: stop token": "in a spec step, at or after an accepted draft token, or before one",
    "ended inside an accepted run: end of sequence": "likewise",
    "ended inside an accepted run: length": "likewise",
    "ended in a plain step: stop token": "at a token of a plain step",
    "ended in a plain step: end of sequence": "likewise",
    "ended in a plain step: length": "likewise",
    "ended by its prefill": "at its first token, or the first after a retraction",
    "two ended in one step": "two or more requests got their last token in one decode step",
    "ended in a spec step before one that goes on": "of those in a later row of the batch some one goes on",
    "ended in a plain step before one that goes on": "of those in a later row of the batch some one goes on",
    "context limit": "a request ended because the context did",
    "abort of a waiting request": "of one that never ran",
    "abort within a prefill": "of one that was prefilled, or some chunks of it, and never decoded",
    "abort of a running request": "of one that took part in a decode step",
    "abort with a result in flight": "its last step's result was dropped, as overlap scheduling does",
    "retraction": "a running request went back to the queue, and was prefilled again",
    "retraction for lack of memory": "in a program without `Retract`",
    "several retracted at once": "two or more left the batch at the same step",
    "retracted right after another ended": "its last step was the last of one that ended by itself",
    "retracted with a result in flight": "its last step's result was dropped, as overlap scheduling does",
    "retracted with its end in flight": "the result dropped would have ended it",
    "prefix cache hit": "a prefill of fewer tokens than its requests had",
    "chunked prefill": "a request prefilled in two steps or more",
    "chunk of K+1 tokens": "a chunk of as many tokens as a spec step of topk 1 verifies, alone in its step",
    "chunk boundary in output that is prefilled again": "after a retraction, where the trace tells",
    "row recycled": "a request took a row of the request pool that another had used",
    "row recycled at once": "used until the step before, or the one before that",
    "waited for room": "a decode step with requests waiting",
    "drawn tokens": "a request at a temperature above 0 got tokens",
    "drawn tokens in both modes": "in spec and in plain steps",
    "penalty": "a request with a frequency penalty got tokens",
    "penalty in both modes": "in spec and in plain steps",
    "logprobs": "a request that asks for them got tokens",
    "logprobs in both modes": "in spec and in plain steps",
    "flush granted": "of caches, at a moment when nothing was pending",
    "flush refused": "at another",
    "stopped with work pending": "the program ended before its requests did",
}
"""Each label, in display order, and when a run has it."""

ALPHABET = tuple(MEANINGS)


def labels(program: Program, trace: Trace) -> Counter[str]:
    """What the run reached; of a trace that stopped early, what it reached until then."""
    run = courses(program, trace)
    found = chain(
        of_batches(program, trace, run),
        of_requests(program, trace, run),
        of_prefills(program, trace, run),
        ("flush granted" if granted else "flush refused" for granted in trace.flushes),
        () if trace.idle else ("stopped with work pending",),
    )
    counted = Counter(found)
    assert counted.keys() <= MEANINGS.keys(), counted.keys() - MEANINGS.keys()
    return counted
