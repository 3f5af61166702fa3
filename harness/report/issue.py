"""A finding as the text of an issue, under the headings of SGLang's bug report."""

from collections.abc import Mapping
from pathlib import Path

from harness.configuration import EngineConfig
from harness.isolation.ran import Ran
from harness.program import Program
from harness.report import facts, rows
from harness.report.script import python_of, templates
from harness.search.finding import Finding

TEMPLATE = "issue.md.jinja"
LANGUAGES = {".py": "python", ".diff": "diff", ".patch": "diff"}
MOST_CHARACTERS = 16_000
"""Of one message or output: GitHub takes 65,536 for an issue."""
SAID = {
    "fails": "What the check says",
    "raises": "What the scheduler raises",
    "dies": "How it died",
    "hangs": "The stacks of its threads",
}


def text(finding: Finding, program: Program, script: str, patch: Mapping[str, str]) -> str:
    """The report: `program` and `script` as they are in the reproducer's folder, `patch` its files' text by name."""
    ran, config = finding.ran, finding.program.config
    return (
        templates()
        .get_template(TEMPLATE)
        .render(
            headline=facts.headline(ran),
            summary=f"With {facts.under_test(config)}, {facts.clause(ran.outcome)}{facts.with_sizes(ran.trace)}.",
            invariant=facts.invariant(ran.outcome.check),
            outcome=ran.outcome,
            said=SAID.get(ran.outcome.kind, "What was seen"),
            message=fenced(clipped(ran.message or ran.outcome.text or "Nothing was said.")),
            output=fenced(clipped(ran.output)) if ran.output.strip() else None,
            table=fenced(rows.around(ran.trace, ran.outcome.step)) if ran.trace.steps else None,
            until=_until(ran),
            seen_again=facts.seen_again(finding),
            variants=[(name, _in_a_cell(str(facts.in_full(outcome)))) for name, outcome in finding.variants],
            skipped=[f"{name} ({count}): {reason}" for (name, reason), count in sorted(ran.skipped.items())],
            release=facts.release(),
            conditions=facts.conditions(config),
            models=_models(config),
            place=facts.place(finding.device),
            device=finding.device.value,
            program=fenced(python_of(program), "python"),
            operations=len(program.operations),
            origin=facts.origin(finding),
            script=fenced(script, "python"),
            patch=[(name, fenced(text, LANGUAGES[Path(name).suffix])) for name, text in patch.items()],
            environment=fenced(clipped(finding.environment)) if finding.environment.strip() else None,
        )
    )


def fenced(content: str, language: str = "text") -> str:
    """A block of code; its fence is longer than any in it."""
    fence = "```"
    while fence in content:
        fence += "`"
    return f"{fence}{language}\n{content.strip(chr(10))}\n{fence}"


def clipped(content: str) -> str:
    """The beginning and the end, saying how much is left out between them."""
    left_out = len(content) - MOST_CHARACTERS
    if left_out <= 0:
        return content
    half = MOST_CHARACTERS // 2
    return f"{content[:half]}\n... {left_out} characters left out ...\n{content[-half:]}"


def _until(ran: Ran) -> str | None:
    """How far a program got that left no rows."""
    return fenced(python_of(ran.until), "python") if not ran.trace.steps and ran.until != ran.program else None


def _models(config: EngineConfig) -> str:
    if config.models is None:
        return "sglang-toggle-harness's own pair, a tiny target and EAGLE-3 draft that come with it"
    dummy = ", dummy weights" * config.models.dummy_weights
    return f"`{config.models.target}` with draft `{config.models.draft}`{dummy}"


def _in_a_cell(phrase: str) -> str:
    return phrase.replace("|", "\\|").replace("\n", " ")
