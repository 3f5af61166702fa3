"""Answers in closed form, for tests that mean to judge something."""

from harness.oracle import Answer, closed_form
from harness.program import Program


def right_answers(program: Program) -> list[Answer]:
    """The closed-form answers; fails where there are none, so that a test can't pass by judging nothing."""
    answers = closed_form(program)
    assert answers
    return answers
