"""The standalone script of a reproducer: one Python file with the program in it, formatted as ruff formats."""

from dataclasses import fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from harness.configuration import Value
from harness.outcome import Outcome
from harness.patches.stack import entries, file_named
from harness.program import Program
from harness.report import facts

if TYPE_CHECKING:
    from jinja2 import Environment

WIDTH = 120
INDENT = "    "
TEMPLATE = "reproduce.py.jinja"
SECONDS_PER_STEP = 120
"""After which a step that doesn't return counts as hanging; a GPU may compile kernels in its first."""


def text(program: Program, outcome: Outcome, title: str) -> str:
    """The script's text; it runs in the folder that holds the program's patch."""
    patched = any(file_named(entry) for entry in entries(program.config.patch))
    source = python_of(program, taken=len("PROGRAM = "))
    return (
        templates()
        .get_template(TEMPLATE)
        .render(
            program=source,
            unformatted=_filled(source),
            imports=_imports(program, outcome, patched),
            title=title[0].upper() + title[1:],
            found=_flat(facts.clause(outcome)),
            outcome=outcome,
            patched=patched,
            release=facts.release(),
            seconds=SECONDS_PER_STEP,
        )
    )


@cache
def templates(escaped: bool = False) -> "Environment":
    """The templates of reports; in Markdown and Python nothing is escaped, in HTML everything."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("harness.report"),
        autoescape=escaped,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
    )


def python_of(value: Any, indent: str = "", taken: int = 0) -> str:
    """A value as Python: on one line where it fits, else an argument a line, token ids filled.

    `taken` is how much of the line is needed for something else.
    """
    flat = _flat(value)
    if len(indent) + taken + len(flat) <= WIDTH or not _parts(value):
        return flat
    inner = indent + INDENT
    if isinstance(value, tuple) and all(isinstance(item, int) for item in value):
        return f"(\n{_fill(value, inner)}\n{indent})"
    opening = "(" if isinstance(value, tuple) else f"{type(value).__name__}("
    lines = [
        f"{inner}{prefix}{python_of(part, inner, taken=len(prefix) + len(','))}," for prefix, part in _parts(value)
    ]
    return "\n".join([opening, *lines, f"{indent})"])


def _parts(value: Any) -> list[tuple[str, Any]]:
    """What a value is made of, each with its `name=`."""
    if isinstance(value, Value):
        return [(f"{name}=", part) for name, part in value.__repr_args__()]
    if is_dataclass(value):
        return [(f"{field.name}=", getattr(value, field.name)) for field in fields(value)]
    return [("", item) for item in value] if isinstance(value, tuple) else []


def _flat(value: Any) -> str:
    if isinstance(value, str):
        text = repr(str(value))
        return text if '"' in text else f'"{text[1:-1]}"'  # the quotes that ruff would choose
    if not isinstance(value, tuple | Value) and not is_dataclass(value):
        return repr(value)
    inside = ", ".join(f"{prefix}{_flat(part)}" for prefix, part in _parts(value))
    if isinstance(value, tuple):
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    return f"{type(value).__name__}({inside})"


def _fill(numbers: tuple[int, ...], indent: str) -> str:
    lines, line = [], indent
    for number in numbers:
        if len(line) + len(f" {number},") > WIDTH:
            lines.append(line)
            line = indent
        line += f"{' ' * (line != indent)}{number},"
    return "\n".join([*lines, line])


def _filled(source: str) -> bool:
    """Whether token ids were filled: ruff would give each a line of its own."""
    return any(line.strip().count(", ") and line.strip()[0].isdigit() for line in source.splitlines())


def _imports(program: Program, outcome: Outcome, patched: bool) -> list[str]:
    """All import statements, in the order of ruff: the standard library's, a line between, the harness's."""
    modules = {"argparse", "sys", "traceback"}
    modules |= {"dies": {"faulthandler", "subprocess"}, "hangs": {"faulthandler"}}.get(outcome.kind, set())
    names: dict[str, set[str]] = {
        "harness.checks": {"CheckFailed", "Checks"},
        "harness.engine.device": {"Device"},
        "harness.engine.engine": {"Engine"},
        "harness.errors": {"UsageError"},
        "harness.report.rows": {"RunningTable"},
    }
    if outcome.kind == "hangs":
        names["harness.trace"] = {"TraceStep"}
    if patched:
        names["harness.patches.beside"] = {"patch_beside"}
    _collect(program, names)
    return [
        *(f"import {module}" for module in sorted(modules)),
        *(["from pathlib import Path"] if patched else []),
        "",
        *(f"from {module} import {', '.join(sorted(found))}" for module, found in sorted(names.items())),
    ]


def _collect(value: Any, names: dict[str, set[str]]) -> None:
    """Add the classes that a value's Python form names, by module."""
    if isinstance(value, Value) or is_dataclass(value):
        names.setdefault(type(value).__module__, set()).add(type(value).__name__)
    for _, part in _parts(value):
        _collect(part, names)
