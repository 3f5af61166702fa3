"""What a parent and the child with its engine say to each other."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from harness.checks import FAMILIES
from harness.checks.base import Check
from harness.configuration import EngineConfig
from harness.program import Program
from harness.trace import Trace

Summary = Callable[[Program, Trace], Counter[str]]
"""Counts what a run reached, in the child, so that traces needn't travel; a function of a module."""


def no_summary(program: Program, trace: Trace) -> Counter[str]:
    """Nothing."""
    return Counter()


@dataclass(frozen=True, slots=True)
class Boot:
    """Boot an engine, in the place of the one there is."""

    config: EngineConfig


@dataclass(frozen=True, slots=True)
class Run:
    """Run a program on the engine."""

    program: Program
    families: tuple[type[Check], ...] | None = FAMILIES
    """None: with nothing looking on."""
    excuse_sglang: bool = True
    summary: Summary = no_summary
    keep_trace: bool = False
    """Whether the trace comes back of a program that passes, too."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a child says to one message."""

    content: Any
    last: bool
    """Whether it ends now, since its GPU can't be used any more."""


@dataclass(frozen=True, slots=True)
class Booted:
    """The engine is there."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Refused:
    """What was asked for can't be done as asked; `message` is for the person who asked."""

    message: str


@dataclass(frozen=True, slots=True)
class BootFailed:
    """SGLang raised while it booted."""

    text: str
    message: str
