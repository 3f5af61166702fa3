"""Programs as they are drawn: valid, crossing, the same again for a seed, and shrinking to what is simplest."""

from collections.abc import Callable
from itertools import pairwise
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, find, settings

from harness.configuration import EngineConfig, Toggle, Worker
from harness.limits import check_program
from harness.program import Abort, Drain, Program, Retract, Step, Submit
from harness.prompts import EOS_TOKEN
from harness.search.batch_model import BatchModel
from harness.search.grid import grid
from harness.search.sampling import program_of, sample
from harness.search.strategies import configurations, programs
from harness.search.upstream import stops_late

CONFIGS = {
    "v1": EngineConfig(graphs=(1, 2, 4, 8), max_running_requests=10, toggle=Toggle(threshold=2)),
    "V2-chunked": EngineConfig(
        worker=Worker.V2, page_size=4, graphs=(2, 4), max_running_requests=6, chunked_prefill_size=8,
        context_length=96, toggle=Toggle(threshold=2),
    ),
}  # fmt: skip
EACH = 8


@pytest.fixture(scope="module")
def samples() -> dict[str, list[Program]]:
    return {name: sample(config, EACH) for name, config in CONFIGS.items()}


def crossings(program: Program) -> int:
    """Switches, as the model has them."""
    model, modes = BatchModel(program.config), []

    def step() -> None:
        model.step()
        modes.append(model.speculated)

    for operation in program.operations:
        match operation:
            case Submit():
                model.submit(operation)
            case Abort(request=number):
                model.abort(number)
            case Retract():
                model.retract()
            case Step(count=count):
                for _ in range(count):
                    step()
            case Drain():
                while model.present:
                    step()
    decoded = [mode for mode in modes if mode is not None]
    return sum(before != after for before, after in pairwise(decoded))


def simplest(condition: Callable[[Program], bool], config: EngineConfig = CONFIGS["v1"]) -> Program:
    phases = (Phase.generate, Phase.shrink)
    quick = settings(database=None, phases=phases, suppress_health_check=list(HealthCheck))
    return find(programs(config), condition, settings=quick, random=Random(0))


@pytest.mark.parametrize("name", CONFIGS)
def test_drawn_programs_are_valid_and_known_wrong_answers_avoided(name: str, samples: dict[str, list[Program]]) -> None:
    for program in samples[name]:
        check_program(program)
        assert sum(submit.count for submit in program.submits) <= CONFIGS[name].max_running_requests + 6
        assert not any(stops_late(program.config, submit) for submit in program.submits)


def test_most_cross_the_threshold_both_ways(samples: dict[str, list[Program]]) -> None:
    crossed = [crossings(program) >= 2 for several in samples.values() for program in several]
    assert sum(crossed) >= 0.8 * len(crossed)


def test_drawn_programs_are_many_and_various(samples: dict[str, list[Program]]) -> None:
    drawn = [program for several in samples.values() for program in several]
    assert len(set(drawn)) == 2 * EACH
    assert {type(operation).__name__ for program in drawn for operation in program.operations} == {
        "Submit", "Step", "Abort", "Retract", "Flush", "Drain",
    }  # fmt: skip
    submits = [submit for program in drawn for submit in program.submits]
    assert any(submit.stop_token is not None for submit in submits)
    assert any(submit.logprobs for submit in submits)
    assert {submit.open for submit in submits} == {True, False}


def test_the_same_number_gives_the_same_program(samples: dict[str, list[Program]]) -> None:
    assert [program_of(CONFIGS["v1"], number) for number in (0, 3)] == [samples["v1"][0], samples["v1"][3]]


def test_the_end_of_sequence_comes_early_where_it_is_wanted(samples: dict[str, list[Program]]) -> None:
    submits = [submit for several in samples.values() for program in several for submit in program.submits]
    wanted = [submit for submit in submits if not submit.ignore_eos and submit.stop_token is None]
    assert wanted
    firsts = [submit.family()[0] for submit in wanted]
    early = [first for first in firsts if EOS_TOKEN in first.sequence(first.length + 20)[first.length :]]
    assert len(early) > 0.8 * len(wanted)


def test_the_simplest_program_is_empty() -> None:
    assert simplest(lambda _: True).operations == ()


def test_what_fails_on_one_request_shrinks_to_the_default_one() -> None:
    assert simplest(lambda program: bool(program.submits)).operations == (Submit(),)


def test_what_fails_on_a_crossing_shrinks_to_just_enough() -> None:
    program = simplest(lambda program: crossings(program) > 0)
    assert [type(operation) for operation in program.operations] == [Submit, Step, Submit, Drain]
    assert sum(submit.count for submit in program.submits) == 3
    assert {submit.model_copy(update={"count": 1}) for submit in program.submits} == {Submit()}


def test_configurations_are_those_of_the_grid() -> None:
    configs = grid()[:4]
    quick = settings(database=None, max_examples=20)
    assert find(configurations(configs), lambda _: True, settings=quick) == configs[0]
