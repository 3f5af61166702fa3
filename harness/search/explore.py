"""One shard under Hypothesis: generate programs, and shrink the first that fails."""

from collections.abc import Callable

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis.database import ExampleDatabase
from hypothesis.errors import Flaky

from harness.isolation.ran import Ran
from harness.program import Program
from harness.search.shards import Shard
from harness.search.shrink import Shortest
from harness.search.strategies import programs


class _Fails(Exception):
    """A program failed; one class and one place, which is how Hypothesis tells failures apart."""


class _Through(BaseException):
    """Carries an error past Hypothesis, which would take it for a failing program."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


def explore(
    shard: Shard, run: Callable[[Program], Ran], shortest: Shortest, database: ExampleDatabase | None = None
) -> bool:
    """Run the shard's programs; whether one failed. What Hypothesis shrank it to is in `shortest`.

    Each program runs once: the answer of one that Hypothesis asks for again is remembered. Whatever `run` raises comes
    through at once, and `shortest` holds the best so far.
    """
    fails: dict[Program, bool] = {}

    def property_(program: Program) -> None:
        if program not in fails:
            try:
                fails[program] = shortest.take(run(program))
            except Exception as error:
                raise _Through(error) from error
        if fails[program]:
            raise _Fails

    # The seed before the settings: it would take the database out of them.
    test = seed(shard.seed)(given(programs(shard.config))(property_))
    test = settings(
        max_examples=shard.examples,
        phases=(Phase.reuse, Phase.generate, Phase.shrink),
        database=database,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
        verbosity=Verbosity.quiet,
        print_blob=False,
    )(test)
    try:
        test()
    except (_Fails, Flaky):
        return True
    except _Through as through:
        raise through.error from None
    return shortest.ran is not None
