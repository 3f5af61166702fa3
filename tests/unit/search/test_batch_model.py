"""The model that steers generation: rough, but right about who runs."""

from harness.configuration import EngineConfig, Toggle, Worker
from harness.program import Submit
from harness.prompts import Prompt
from harness.search.batch_model import BatchModel

CONFIG = EngineConfig(topk=1, max_running_requests=4, graphs=(), toggle=Toggle(threshold=2))


def stepped(model: BatchModel, count: int) -> list[tuple[int, bool | None]]:
    seen = []
    for _ in range(count):
        model.step()
        seen.append((len(model.present), model.speculated))
    return seen


def test_a_prefill_gives_one_token_a_plain_step_one_and_a_spec_step_what_is_accepted() -> None:
    model = BatchModel(CONFIG)
    model.submit(Submit(max_new_tokens=9))
    model.step()
    (request,) = model.present
    assert (request.produced, model.speculated) == (1, None)
    model.step()
    assert request.produced == 1 + 1 + request.draft_after[1] > 2
    model.submit(Submit(count=2))
    before = request.produced
    model.step()
    model.step()
    assert (request.produced, model.speculated, model.switched_off) == (before + 1, False, True)


def test_no_more_run_than_may() -> None:
    model = BatchModel(CONFIG)
    model.submit(Submit(count=6, max_new_tokens=3))
    model.step()
    assert (len(model.running), model.size, model.settled) == (4, 4, True)
    assert stepped(model, 3)[-1] == (2, False)
    assert not model.waiting


def test_chunks_take_a_step_each_and_a_page_at_least() -> None:
    submit = Submit(count=2, prompt=Prompt(period=7, seed=0, length=20))
    for page, steps in ((1, 3), (16, 4)):
        chunked = CONFIG.model_copy(update={"chunked_prefill_size": 16, "page_size": page})
        model = BatchModel(chunked)
        model.submit(submit)
        assert model.steps_until(lambda model: model.settled) == steps
        assert not model.running


def test_with_overlap_an_ended_request_stays_a_step_longer() -> None:
    v2 = EngineConfig(worker=Worker.V2, max_running_requests=4, graphs=(), toggle=Toggle(threshold=2))
    sizes = []
    for config in (CONFIG, v2):
        model = BatchModel(config)
        model.submit(Submit(max_new_tokens=1))
        model.step()
        model.step()
        sizes.append(len(model.running))
    assert sizes == [0, 1]


def test_retracted_for_lack_of_memory() -> None:
    model = BatchModel(EngineConfig(kv_tokens=48, max_running_requests=4, graphs=(), toggle=Toggle(threshold=1)))
    model.submit(Submit(count=2, max_new_tokens=12))
    model.step()
    assert len(model.running) == 2
    model.step()
    assert (len(model.running), len(model.waiting)) == (1, 1)


def test_looking_ahead_changes_nothing_and_gives_up() -> None:
    model = BatchModel(CONFIG)
    model.submit(Submit(count=3))
    assert model.steps_until(lambda model: not model.present) < 20
    assert model.steps_until(lambda model: model.submitted > 3) == 200
    assert (len(model.waiting), model.running, model.speculated) == (3, [], None)


def test_hysteresis_moves_the_bound_while_off() -> None:
    model = BatchModel(CONFIG.model_copy(update={"toggle": Toggle(threshold=2, hysteresis=1)}))
    assert model.most_speculating == 2
    model.submit(Submit(count=3))
    stepped(model, 2)
    assert model.most_speculating == 1


def test_aborted_and_drained_requests_are_gone() -> None:
    model = BatchModel(CONFIG)
    model.submit(Submit(count=3))
    model.step()
    model.abort(1)
    assert [request.number for request in model.present] == [0, 2]
    model.drain()
    assert model.present == []
