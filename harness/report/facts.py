"""What is known of a failure, in words: the same in a report, in a case's README and above a picture."""

import re
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from itertools import groupby

from harness.checks import FAMILIES
from harness.configuration import EngineConfig, Toggle
from harness.engine.device import Device
from harness.isolation.ran import Ran
from harness.outcome import Outcome
from harness.patches.stack import UNCHANGED, entries, file_named
from harness.search.finding import Finding
from harness.trace import Trace

MOST_SIZES = 24
NAMES_OF_NOTHING = ("patch", "plugin")
"""Of a file with such a name its folder says more."""
WORKERS = {"none": "`TpModelWorker`", "v1": "`EAGLEWorker`", "v2": "`EAGLEWorkerV2`"}


def release() -> str:
    """Version of SGLang that is installed here; it isn't imported."""
    return version("sglang")


def subject(config: EngineConfig) -> str:
    """What was under test, by its short name: a patch, the fixed toggle, or a worker as SGLang has it."""
    if config.patch != UNCHANGED:
        return "+".join(_short(entry) for entry in entries(config.patch))
    return "toggle" if config.toggle else f"worker-{config.worker.value}"


def under_test(config: EngineConfig) -> str:
    """What was under test, within a sentence."""
    if config.patch != UNCHANGED:
        return f"patch `{subject(config)}`"
    return "the fixed toggle" if config.toggle else f"SGLang's worker {config.worker.value} as it is"


def _short(entry: str) -> str:
    file = file_named(entry)
    if file is None:
        return entry.rpartition(":")[2]
    return file.stem if file.stem not in NAMES_OF_NOTHING else file.absolute().parent.name


def headline(ran: Ran) -> str:
    """What was under test and what happened, for a title."""
    return f"{under_test(ran.program.config).replace('`', '')}: {clause(ran.outcome)}"


def conditions(config: EngineConfig) -> str:
    """The configuration, as far as a reader needs it."""
    draft = f"topk {config.topk}, {config.steps} steps, {config.verified_tokens} draft tokens"
    parts = [
        f"worker {config.worker.value}",
        *(_switched(config.toggle) if config.toggle else ()),
        *([draft] if config.speculative else []),
        f"page size {config.page_size}",
        f"graphs at {', '.join(map(str, config.graphs))}" if config.graphs else "no graphs",
    ]
    return ", ".join(parts)


def _switched(toggle: Toggle) -> Iterator[str]:
    yield f"threshold {toggle.threshold}"
    if toggle.hysteresis:
        yield f"hysteresis {toggle.hysteresis}"
    if toggle.strategy == "plain":
        yield "strategy plain"
    if toggle.kept_tokens:
        yield f"{toggle.kept_tokens} tokens kept"


def place(device: Device) -> str:
    """Where it ran."""
    return "a GPU" if device is Device.CUDA else "the emulated device (CPU)"


def mark(outcome: Outcome) -> str:
    """The check that failed, the error's type, or how the process ended, in one word or two."""
    if outcome.kind == "fails" and outcome.check:
        return outcome.check
    if outcome.kind == "raises":
        return error_type(outcome)
    return {"dies": "process died", "hangs": "hang"}.get(outcome.kind, outcome.kind)


def error_type(outcome: Outcome) -> str:
    """The type of the error that was raised, as far as the text names one."""
    found = re.match(r"[A-Za-z_][\w.]*", outcome.text or "")
    return found.group().rpartition(".")[2] if found else "error"


def clause(outcome: Outcome) -> str:
    """What happened and when, within a sentence."""
    at = "" if outcome.step is None else f" at step {outcome.step}"
    match outcome.kind:
        case "fails":
            return f"check {outcome.check} fails{at}"
        case "raises":
            return f"the scheduler raises {error_type(outcome)}{at}"
        case "dies":
            return f"the process dies{at}"
        case "hangs":
            return "a step doesn't return" if outcome.step is None else f"step {outcome.step} doesn't return"
        case _:
            return "all checks pass"


def in_full(outcome: Outcome) -> str:
    """What happened, when, and what was said; the type of an error once."""
    said = (outcome.text or "").removeprefix(f"{error_type(outcome)}: ") if outcome.kind == "raises" else outcome.text
    return f"{clause(outcome)}: {said}" if said and outcome.kind != "passes" else clause(outcome)


def batch_sizes(trace: Trace) -> str:
    """The sizes of the decode batch in turn, repetitions left out; nothing where there is no decode row."""
    sizes = [str(size) for size, _ in groupby(trace.decode_sizes)]
    left_out = len(sizes) - MOST_SIZES
    return ", ".join([*(["..."] if left_out > 0 else []), *sizes[-MOST_SIZES:]])


def with_sizes(trace: Trace) -> str:
    """` (decode batch sizes 1, 10)`, for the end of a sentence."""
    sizes = batch_sizes(trace)
    return f" (decode batch size{'s' * (',' in sizes)} {sizes})" if sizes else ""


def origin(finding: Finding) -> str:
    """Where the program comes from, in a sentence."""
    by = "A validation found it" if finding.seed is None else f"A search with seed {finding.seed} found it"
    if finding.found == finding.program:
        return f"{by} so."
    return f"{by} as a program of {len(finding.found.operations)} (`found.json`) and shrank it."


def invariant(check: str | None) -> str | None:
    """What a check demands, in one sentence; None for a check that there isn't."""
    for family in FAMILIES:
        if family.name == check:
            return (family.__doc__ or "").strip().splitlines()[0]
    return None


def seen_again(finding: Finding) -> str:
    """How often it happened again, in a sentence."""
    same, runs = finding.rate
    if not runs:
        return "It was not run again."
    if not finding.flaky:
        return f"{same} of {runs} cold runs ended in the same way."
    how = f"Flaky: {same} of {runs} cold runs ended in the same way; otherwise"
    if not same:
        how = f"Not seen again: none of {runs} cold runs ended in the same way; instead"
    others = [clause(outcome) for outcome in finding.confirmations if not _alike(outcome, finding.ran.outcome)]
    return f"{how} {_counted(others)}."


def _alike(one: Outcome, other: Outcome) -> bool:
    return (one.kind, one.check, one.step) == (other.kind, other.check, other.step)


def _counted(phrases: Sequence[str]) -> str:
    unique = list(dict.fromkeys(phrases))
    return ", ".join(f"{phrase} ({phrases.count(phrase)})" for phrase in unique)
