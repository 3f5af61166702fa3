"""A sample of the programs that the strategies make, the same every time, where nothing is shrunk."""

from itertools import count as counting

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings

from harness.configuration import EngineConfig
from harness.program import Program
from harness.search.strategies import programs


def sample(config: EngineConfig, count: int, first_seed: int = 0) -> list[Program]:
    """`count` different programs of one configuration, the same ones every time."""
    different: dict[Program, None] = {}
    for number in counting(first_seed):
        if len(different) == count:
            break
        different[program_of(config, number)] = None
    return list(different)


def program_of(config: EngineConfig, number: int) -> Program:
    """The program that this number stands for.

    A search of its own for each, since Hypothesis makes most of one search's programs from parts of others of it.
    """
    drawn: list[Program] = []

    @seed(number)
    @settings(
        max_examples=2,  # the simplest comes first
        phases=[Phase.generate],
        database=None,
        deadline=None,
        verbosity=Verbosity.quiet,
        suppress_health_check=list(HealthCheck),
    )
    @given(programs(config))
    def draw(program: Program) -> None:
        drawn.append(program)

    draw()
    return drawn[-1]
