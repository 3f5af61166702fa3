"""A finding as a folder that is a case, with all that a person needs to see it, run it and report it."""

import json
import os
import re
import shutil
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from harness.cases import EXPECTED, PROGRAM, README, Expected
from harness.configuration import EngineConfig
from harness.errors import UsageError
from harness.outcome import Outcome
from harness.patches.beside import files, local
from harness.patches.reading import text_of
from harness.patches.stack import UNCHANGED
from harness.program import Program
from harness.report import chrome_trace, facts, issue, script
from harness.search.finding import Finding

FOUND, REPORT, SCRIPT, TIMELINE, TRACE = "found.json", "report.md", "reproduce.py", "timeline.svg", "trace.json"
TEMPLATE = "case.md.jinja"
ADDRESS = re.compile(r"0x[0-9a-f]{4,}")


def write(finding: Finding, parent: Path) -> Path:
    """Write the reproducer into a new folder and return it; where the same one is there already, that one, untouched.

    A person may have written into it. The folder appears whole or not at all. Raises UsageError where `parent` can't be
    written to.
    """
    try:
        parent.mkdir(parents=True, exist_ok=True)
        for name in _names(finding):
            if not (parent / name).exists() and _put(finding, parent, name):
                break
            if _holds(parent / name, finding):
                break
    except OSError as error:
        raise UsageError(f"{parent}: no reproducer can be written there: {error.strerror or error}") from None
    return parent / name


def name_of(finding: Finding) -> str:
    """The folder's name, unless something else has it: what was under test, what happened, and when."""
    outcome = finding.ran.outcome
    what = outcome.kind if outcome.kind in ("dies", "hangs") else facts.mark(outcome)
    at = f"-step-{outcome.step}" if outcome.step is not None else ""
    return re.sub(r"[^\w.-]+", "-", f"{facts.subject(finding.program.config)}-{what}{at}").lstrip("-.")


def _names(finding: Finding) -> Iterator[str]:
    yield name_of(finding)
    for number in count(2):
        yield f"{name_of(finding)}-{number}"


def _put(finding: Finding, parent: Path, name: str) -> bool:
    """Write beside the folder and rename; false where another process was quicker."""
    unfinished = parent / f".{name}.{os.getpid()}"
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    try:
        _fill(unfinished, finding)
        unfinished.rename(parent / name)
    except OSError:
        if not (parent / name).exists():
            raise
        return False
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return True


def _fill(folder: Path, finding: Finding) -> None:
    from harness.report import timeline  # imports matplotlib

    program, patch = local(finding.program), files(finding.program.config.patch)
    ready = script.text(program, finding.ran.outcome, facts.headline(finding.ran))
    _write(folder / README, _readme(finding, program))
    patch_texts = {name: text_of(file) for name, file in patch.items()}
    _write(folder / REPORT, issue.text(finding, program, ready, patch_texts))
    _write(folder / SCRIPT, ready)
    _write(folder / FOUND, local(finding.found).to_json() + "\n")
    _write(folder / TRACE, chrome_trace.to_json(finding.ran))
    timeline.write(finding.ran, folder / TIMELINE)
    # Last, since they make a folder a case: what is left of an interrupted writing must not be one.
    for file, content in _case(finding).items():
        _write(folder / file, content)


def _case(finding: Finding) -> dict[str, str]:
    """The files that make it this case and no other."""
    patch = files(finding.program.config.patch)
    expected = Expected().model_dump(exclude_none=True)
    expected[finding.device.value] = _lasting(finding.ran.outcome).model_dump(exclude_none=True)
    return {
        PROGRAM: local(finding.program).to_json() + "\n",
        **{name: text_of(file) for name, file in patch.items()},
        EXPECTED: json.dumps(expected, indent=2) + "\n",
    }


def _holds(folder: Path, finding: Finding) -> bool:
    """Whether a folder is the case of this finding already."""
    files = _case(finding)
    return all((folder / file).is_file() and text_of(folder / file) == text for file, text in files.items())


def _write(file: Path, text: str) -> None:
    """With line ends as they are: a diff's belong to it."""
    file.write_bytes(text.encode("utf-8"))


def _lasting(outcome: Outcome) -> Outcome:
    """The outcome without what no other run can repeat: an expected text is a part of what is said."""
    said = ADDRESS.split(outcome.text or "")[0].rstrip()
    return outcome.model_copy(update={"text": said or None})


def _readme(finding: Finding, program: Program) -> str:
    ran, config = finding.ran, program.config
    return (
        script.templates()
        .get_template(TEMPLATE)
        .render(
            headline=facts.headline(ran),
            release=facts.release(),
            worker_class=facts.WORKERS[config.worker.value],
            conditions=facts.conditions(config),
            patch=_patch_line(finding.program.config),
            operations=len(program.operations),
            sizes=facts.with_sizes(ran.trace),
            origin=facts.origin(finding),
            must=facts.invariant(ran.outcome.check) or "Every request ends, with its right tokens.",
            place=facts.place(finding.device),
            clause=facts.clause(ran.outcome),
            text=ran.outcome.text or "nothing was said",
            seen_again=facts.seen_again(finding),
            variants=[(name, facts.in_full(outcome)) for name, outcome in finding.variants],
        )
    )


def _patch_line(config: EngineConfig) -> str | None:
    if config.patch == UNCHANGED:
        return None
    here = ", ".join(f"`{name}`" for name in files(config.patch))
    return f"{facts.subject(config)}{', here ' if here else ''}{here}."
