"""Each check is silent where all is in order, and names step, request, expected and seen where it isn't."""

import random
from dataclasses import replace
from typing import Any

import pytest
import torch

from harness.checks import FAMILIES, NAMES, CheckFailed, Checks, selected
from harness.checks.base import Findings, Skipped, Violation
from harness.checks.draft import MISDRAFTED, WITHOUT_DRAFT, DraftState, acceptance_of
from harness.checks.fresh import fresh
from harness.checks.losslessness import Losslessness
from harness.checks.shapes import Shapes
from harness.checks.sums import Sums
from harness.checks.tokens import LOST, Tokens
from harness.configuration import EngineConfig, Worker
from harness.errors import UsageError
from harness.fetched import fetch
from harness.observation import Compared, DraftCache, Replay
from harness.oracle import Answer
from harness.program import Drain, Program, Submit
from harness.prompts import Prompt
from harness.trace import RequestTrace, Trace
from tests.unit.checks.observations import (
    after,
    forward,
    idle,
    launch,
    memory,
    replayed,
    request,
    step,
    table,
)

V1 = EngineConfig(graphs=())
V2 = EngineConfig(worker=Worker.V2, graphs=())
PROMPT = Prompt(period=4, seed=0, length=6)
RIGHT = PROMPT.sequence(40)


def program(config: EngineConfig = V1, **asked: Any) -> Program:
    return Program(config=config, operations=(Submit(count=2, prompt=PROMPT, max_new_tokens=8, **asked), Drain()))


def found(moment: str, observation: Any, config: EngineConfig = V1) -> list[str]:
    """What all checks say at one moment; I10 and I11 have tests of their own."""
    others = [family for family in FAMILIES if family not in (Losslessness, DraftState)]
    checks = Checks(program(config), others)
    try:
        getattr(checks, moment)(*([7] if moment in ("at_replay", "compared") else []), observation)
    except CheckFailed as failed:
        return [f"{check.partition('-')[0]}: {violation}" for check, violation in failed.violations]
    return []


def test_a_failure_names_its_step_and_its_first_check() -> None:
    with pytest.raises(CheckFailed) as raised:
        Checks(program()).at_forward(forward(seq_lens_sum=13, counts={"input_ids": 2}))
    assert (raised.value.step, raised.value.check) == (7, "I1-shapes")
    assert str(raised.value).splitlines() == [
        "step 7, I1-shapes: length of input_ids, in TARGET_VERIFY of 2 requests, is 2, must be 8",
        "step 7, I5-sums: seq_lens_sum, in TARGET_VERIFY, is 13, must be 14",
    ]


@pytest.mark.parametrize("config", [V1, V2], ids=["v1", "V2"])
def test_all_in_order(config: EngineConfig) -> None:
    assert found("at_launch", launch(), config) == []
    assert found("at_forward", forward(), config) == []
    assert found("at_forward", forward("DECODE"), config) == []
    assert found("at_replay", replayed(), config) == []
    assert found("after_step", after(), config) == []
    assert found("after_step", idle(), config) == []


@pytest.mark.parametrize(
    ("moment", "observation", "message"),
    [
        (
            "at_forward",
            forward(counts={"input_ids": 2, "out_cache_loc": 8, "positions": 8}),
            "I1: length of input_ids, in TARGET_VERIFY of 2 requests, is 2, must be 8",
        ),
        (
            "after_step",
            after(memory=memory(free=torch.tensor([7, 8, 9, 10, 20, 21, 22]))),
            "I2: owners of KV page 7 is ['the allocator', 'request 0'], must be one",
        ),
        (
            "after_step",
            after(memory=memory(free=torch.tensor([9, 10, 20, 21, 22]))),
            "I2: owners of KV page 8 is nobody, must be one",
        ),
        (
            "after_step",
            after(memory=memory(cached=torch.tensor([11, 12, 23, 24, 24]))),
            "I2: owners of KV page 24 is ['the radix cache', 'the radix cache'], must be one",
        ),
        (
            "after_step",
            after(requests=[request(0), request(1, allocated=8)], memory=memory(table=torch.full((4, 12), 99))),
            "I2: KV pages of request 0 is [99, 99, 99, 99, 99, 99], must be 1 to 24",
        ),
        (
            "after_step",
            after(memory=memory(free=torch.tensor([0, 8, 9, 10, 20, 21, 22]))),
            "I2: KV pages of the allocator is [0], must be 1 to 24",
        ),
        (
            "after_step",
            after(memory=memory(free=torch.tensor([8, 9, 10, 20, 21, 25]))),
            "I2: KV pages of the allocator is [25], must be 1 to 24",
        ),
        (
            "at_launch",
            launch(requests=[request(0), request(1, committed=6)]),
            "I3: kv_committed_len of request 1 is 6, must be 7",
        ),
        ("at_launch", launch(seq_lens_cpu=torch.tensor([7, 6])), "I3: seq_lens_cpu of request 1 is 6, must be 7"),
        ("at_launch", launch(speculative=False), "I3: seq_lens of request 0 is 7, must be 8"),
        ("at_forward", forward(seq_lens_sum=13), "I5: seq_lens_sum, in TARGET_VERIFY, is 13, must be 14"),
        (
            "at_forward",
            forward(seq_lens_cpu=torch.tensor([7, 8]), seq_lens_sum=15),
            "I5: seq_lens_cpu, in TARGET_VERIFY, is [7, 8], must be [7, 7]",
        ),
        ("at_launch", launch(spec_rows=None), "I6: spec_info is None, must be what to draft from"),
        (
            "at_launch",
            launch(spec_rows={"topk_p": 1, "bonus_tokens": 2}),
            "I6: rows of spec_info.topk_p is 1, must be 2",
        ),
        (
            "at_launch",
            launch(bonus_tokens=torch.tensor([22, 21])),
            "I6: spec_info.bonus_tokens of request 1 is 21, must be 22",
        ),
        (
            "after_step",
            after(step=step("DECODE"), read={0: 21, 1: 20}),
            "I6: the token that a decode step read of request 1 is 20, must be 21",
        ),
        (
            "at_replay",
            replayed(captured_size=2, padded_slots=None),
            "I7: captured size of the target's graph is 2, must be >= 3",
        ),
        (
            "at_replay",
            replayed(mode="DECODE"),
            "I7: forward mode of a batch on the target's graph is DECODE, must be TARGET_VERIFY",
        ),
        ("at_replay", replayed(tokens=3), "I7: tokens of 3 requests on the target's graph is 3, must be 12"),
        ("at_replay", replayed(padded_slots=torch.tensor([0, 9])), "I7: KV slots of padded rows, target, is [0, 9]"),
        ("at_replay", replayed(padded_lengths=torch.tensor([3])), "I7: lengths of padded rows, target, is [3]"),
        (
            "at_replay",
            replayed(model="draft", listed=688, room=384),
            "I7: KV indices that a step of the draft's graph lists is 688",
        ),
        ("at_replay", replayed(moved=("seq_lens",)), "I7: address of the target's captured seq_lens is another"),
        (
            "compared",
            Compared("DECODE", 2, torch.eye(2) * 9, torch.eye(2).flip(0) * 9),
            "I7: a replay of DECODE, 2 requests, by 9 off eager: tokens is [0, 1], must be [1, 0]",
        ),
        (
            "at_forward",
            forward("DECODE", out_cache_loc=torch.tensor([8, 19])),
            "I8: KV slots written at positions from 7 on of request 1 is [19], must be [20]",
        ),
        ("after_step", after(step=step(tokens_out=(1, 0))), "I9: tokens in a spec step of request 1 is 0, must be 1"),
        (
            "after_step",
            after(step=step("DECODE", tokens_out=(1, 2))),
            "I9: tokens in a plain step of request 1 is 2, must be 1",
        ),
        (
            "after_step",
            after(streamed={0: [20, 21, 22], 1: [20, 22]}),
            "I9: what was streamed of request 1 is 2 tokens, another from token 1 on, must be 3 tokens kept",
        ),
        (
            "after_step",
            idle(memory=memory(free=torch.arange(1, 10), free_rows=[1, 2, 3])),
            "I12: KV pages that neither the allocator nor the radix cache has, when idle, is 11, must be 0",
        ),
        (
            "after_step",
            idle(memory=memory(free=torch.tensor([*range(1, 11), *range(13, 23)]), free_rows=[1, 3])),
            "I12: request rows not free, when idle, is [2], must be none",
        ),
        (
            "after_step",
            idle(
                memory=memory(free=torch.tensor([*range(1, 11), *range(13, 23)]), free_rows=[1, 2, 3], locked_tokens=4)
            ),
            "I12: tokens locked in the radix cache, when idle, is 4, must be 0",
        ),
    ],
)
def test_violations(moment: str, observation: Any, message: str) -> None:
    said = found(moment, observation)
    assert any(line.startswith(message) for line in said), said


def test_lengths_of_v2() -> None:
    in_flight = [request(0, in_flight=1, committed=8), request(1, in_flight=1)]
    owned = torch.tensor([9, 10, 20, 21, 22])  # request 0 owns page 8 by now
    said = found("after_step", after(requests=in_flight, memory=memory(free=torch.cat([owned, torch.tensor([8])]))), V2)
    assert said == ["I4: kv_committed_len of request 1 is 7, must be 8"]
    said = found("at_forward", forward(allocated=(11, 10)), V2)
    assert said == ["I4: kv_allocated_len of request 1 is 10, must be >= 7 + 4"]


def test_pages_of_several_slots() -> None:
    """Request 0 owns slots 4 to 10, pages 1 and 2; the radix cache page 3."""
    slots = torch.zeros(4, 12, dtype=torch.int32)
    slots[1] = torch.arange(4, 16)
    paged = memory(pages=4, page_size=4, free=torch.tensor([4]), cached=torch.tensor([3]), table=slots)
    assert found("after_step", after(step=step(requests=(0,)), requests=[request(0)], memory=paged)) == []
    leak = memory(pages=4, page_size=4, free=torch.tensor([], dtype=torch.int64), cached=torch.tensor([3]), table=slots)
    said = found("after_step", after(step=step(requests=(0,)), requests=[request(0)], memory=leak))
    assert said == ["I2: owners of KV page 4 is nobody, must be one"]


def test_a_partition_is_one_owner_for_each_page() -> None:
    """Whatever owners come, go or change: in order exactly where each page has one, and else some page is named."""
    rng, in_order = random.Random(5), 0
    for _ in range(300):
        free, cached, slots = [8, 9, 10, 20, 21, 22], [11, 12, 23, 24], table()
        for _ in range(rng.choice([0, 1, 1, 2, 3])):
            page = rng.choice([-1, 0, 25, 99, *range(1, 25)])
            match rng.randrange(4):
                case 0:
                    free[rng.randrange(len(free))] = page
                case 1:
                    cached[rng.randrange(len(cached))] = page
                case 2:
                    slots[rng.randint(1, 2), rng.randrange(7)] = page
                case 3:
                    rng.choice([free, cached]).append(page)
        owned = sorted([*free, *cached, *slots[1, :7].tolist(), *slots[2, :7].tolist()])
        seen = after(memory=memory(free=torch.tensor(free), cached=torch.tensor(cached), table=slots))
        said = [line for line in found("after_step", seen) if line.startswith("I2")]
        assert (said == []) == (owned == list(range(1, 25))), (free, cached, slots, said)
        in_order += said == []
    assert 40 < in_order < 260


def test_no_progress() -> None:
    checks = Checks(program(), selected("I12"))
    nothing = after(step=step(tokens_out=(0, 0)))
    for _ in range(32):
        checks.after_step(nothing)
    with pytest.raises(CheckFailed, match="steps without a token"):
        checks.after_step(nothing)


def logprobs(asked: dict[str, Any], streamed: dict[str, Any], **more: Any) -> list[object]:
    """Of two requests, the second with nothing wrong."""
    of_both = {field: {0: values, 1: []} for field, values in {"logprobs": [], "top_logprobs": [], **streamed}.items()}
    tokens = {0: [20, 21], 1: []}
    requests = [request(0, output=tokens[0]), request(1, output=tokens[1])]
    seen = after(requests=requests, streamed=tokens, step=step(tokens_out=(1, 1)), **of_both, **more)
    return list(Tokens(program(logprobs=True, **asked)).after_step(seen))


TOP = [{20: -0.5, 7: -1.5}, {21: -0.25, 8: -2.0}]


@pytest.mark.parametrize(
    ("asked", "streamed", "finding"),
    [
        ({}, {"logprobs": [-0.5, -0.25]}, None),
        ({}, {"logprobs": [-0.5]}, Violation("number of logprobs streamed", 2, 1, 0)),
        ({"top_logprobs": 2}, {"logprobs": [-0.5, -0.25], "top_logprobs": TOP}, None),
        (
            {"top_logprobs": 2},
            {"logprobs": [-0.5, -0.25], "top_logprobs": TOP[:1]},
            Violation("number of places with top logprobs streamed", 2, 1, 0),
        ),
        (
            {"top_logprobs": 2},
            {"logprobs": [-0.5, -0.25], "top_logprobs": [TOP[0], {21: -0.25}]},
            Violation("top logprobs of output token 1", 2, 1, 0),
        ),
        (
            {"top_logprobs": 2},
            {"logprobs": [-0.5, -0.25], "top_logprobs": [TOP[1], TOP[1]]},
            Violation("logprob of output token 0", -0.25, -0.5, 0),
        ),
        (
            {"top_logprobs": 2, "temperature": 1.0},
            {"logprobs": [-9.0, -0.75], "top_logprobs": [TOP[1], TOP[1]]},
            Violation("logprob of output token 1", -0.25, -0.75, 0),
        ),
    ],
    ids=["right", "one lost", "right, with the likeliest", "place lost", "one too few", "another row's", "sampled"],
)
def test_logprobs(asked: dict[str, Any], streamed: dict[str, Any], finding: Violation | None) -> None:
    """A greedy token is the likeliest; a sampled one may be too unlikely to be among those that were asked for."""
    assert logprobs(asked, streamed) == ([finding] if finding else [])


def test_a_retracted_request_may_lose_a_logprob() -> None:
    """Its first, by SGLang's own doing; but not two, and not one that was retracted later, or never."""
    lost = Violation("number of logprobs streamed", 2, 1, 0)
    assert logprobs({}, {"logprobs": [-0.25]}, retracted={0}) == [Skipped(LOST)]
    assert logprobs({}, {"logprobs": [-0.25]}, retracted={1}) == [lost]
    assert logprobs({}, {}, retracted={0}) == [replace(lost, seen=0)]
    check = Tokens(program(logprobs=True))
    before = after(requests=[], streamed={0: [20], 1: []}, logprobs={0: [-0.5], 1: []}, top_logprobs={0: [], 1: []})
    later = replace(before, streamed={0: [20, 21], 1: []}, retracted={0})
    assert [list(check.after_step(each)) for each in (before, later)] == [[], [lost]]


def lossless(streamed: list[int], ended: str | None = None) -> list[object]:
    check = Losslessness(program(), [Answer(RIGHT[6:9], "length")] * 2)
    seen = after(step=step(requests=(0,)), streamed={0: streamed}, ended={0: ended} if ended else {})
    return [str(finding) for finding in check.after_step(seen)]


def test_losslessness() -> None:
    right = list(RIGHT[6:9])
    assert lossless(right[:2]) == []
    assert lossless(right, ended="length") == []
    assert lossless([right[0], 9]) == [f"output token 1 of request 0 is 9, must be {right[1]}"]
    assert lossless([*right, 9]) == ["number of output tokens of request 0 is 4, must be 3, then length"]
    assert lossless(right, ended="stop") == ["end of request 0 is stop after 3, must be length after 3 tokens"]
    assert lossless(right[:2], ended="length") == ["end of request 0 is length after 2, must be length after 3 tokens"]
    assert lossless(right[:2], ended="abort") == []


def test_without_a_right_answer_losslessness_is_skipped() -> None:
    sampled = Program(operations=(Submit(temperature=1.0), Drain()))
    checks = Checks(sampled, selected("I10"))
    checks.after_step(after(step=step(requests=(0,)), streamed={0: [3]}))
    assert list(checks.skipped) == [
        ("I10-losslessness", "no right answer is known: another model pair, sampling or a penalty")
    ]


def accepting(seen: int, config: EngineConfig = V1, **more: Any) -> list[object]:
    check = DraftState(program(config), **more)
    spec = step(requests=(0,), tokens_out=(2,), accepted=(seen,))
    return list(check.after_step(after(step=spec, streamed={0: list(RIGHT[6:8])})))


def test_acceptance() -> None:
    (right,) = {n for n in range(4) if accepting(n) == []}
    assert accepting(right + 1 if right < 3 else 0) == [
        Violation("draft tokens accepted after 0 tokens", right, right + 1 if right < 3 else 0, 0)
    ]


@pytest.mark.parametrize(
    ("known", "why"),
    [
        ({"misdrafted": True}, MISDRAFTED),
        ({"without_draft": {0}}, WITHOUT_DRAFT),
    ],
)
def test_what_sglang_itself_drafts_wrong_is_excused(known: dict[str, Any], why: str) -> None:
    spec = step(requests=(0,), tokens_out=(2,), accepted=(99,))
    seen = after(step=spec, streamed={0: list(RIGHT[6:8])}, **known)
    check = DraftState(program())
    assert list(check.after_step(seen)) == [Skipped(why)]
    check.excuse_sglang = False
    (found,) = check.after_step(seen)
    assert isinstance(found, Violation)


def test_acceptance_of_another_pair_is_that_of_an_always_spec_run() -> None:
    token_ids = Program(config=V1, operations=(Submit(prompt=(3, 4, 5)), Drain()))
    spec = step(requests=(0,), tokens_out=(2,), accepted=(1,))
    traced = RequestTrace(0, (3, 4, 5), output=[5, 6, 7])
    always_spec = acceptance_of(Trace(steps=[spec], requests=[traced]))
    assert always_spec == {(0, 0): 1}
    seen = after(step=step(requests=(0,), tokens_out=(2,), accepted=(0,)), streamed={0: [5, 6]})
    assert list(DraftState(token_ids, always_spec).after_step(seen)) == [
        Violation("draft tokens accepted after 0 tokens", 1, 0, 0)
    ]
    assert [type(finding) for finding in DraftState(token_ids).after_step(seen)] == [Skipped]


def test_draft_cache() -> None:
    tokens = list(RIGHT[:12])
    ((keys, values),) = fresh([tokens])
    check = DraftState(program())
    assert list(check.draft_caches([DraftCache(0, tokens, keys, values)])) == []
    spoilt = values.clone()
    spoilt[[4, 6]] = 0
    (violation,) = check.draft_caches([DraftCache(0, tokens, keys, spoilt)])
    assert isinstance(violation, Violation)
    assert violation.what == "draft KV, value entries of positions 4 to 6 of 11,"
    assert list(check.draft_caches([DraftCache(0, tokens, keys, spoilt, excepted=(4, 6))])) == []


@pytest.mark.parametrize("spoil", [float("nan"), float("inf")])
def test_draft_caches_of_several_requests_are_told_apart(spoil: float) -> None:
    short, long = list(RIGHT[:9]), list(RIGHT[2:30])
    caches = [
        DraftCache(number, tokens, keys[:6], values[:6])
        for number, (tokens, (keys, values)) in enumerate(zip((short, long), fresh([short, long]), strict=True))
    ]
    assert list(DraftState(program()).draft_caches(caches)) == []
    caches[1].keys = caches[1].keys.clone()
    caches[1].keys[3, 0, 0] = spoil
    (violation,) = DraftState(program()).draft_caches(caches)
    assert isinstance(violation, Violation)
    assert (violation.request, violation.what) == (1, "draft KV, key entries of positions 3 of 6,")


def test_fresh_prefills_do_not_depend_on_each_other() -> None:
    short, long = list(RIGHT[:9]), list(RIGHT[2:30])
    together = fresh([short, long])
    for one, (keys, values) in zip((short, long), together, strict=True):
        ((alone_keys, alone_values),) = fresh([one])
        assert torch.allclose(keys, alone_keys, atol=1e-5)
        assert torch.allclose(values, alone_values, atol=1e-5)


def test_selection() -> None:
    assert [family.name for family in selected("I7,I2-slots")] == ["I2-slots", "I7-graphs"]
    assert selected("all") == FAMILIES
    assert len(set(NAMES)) == 12
    with pytest.raises(UsageError, match="no check I13: there are I1-shapes"):
        selected("I13")


def test_a_device_side_fault_is_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first check that reads the GPU would be blamed for it."""

    def look(*_: object) -> Findings:
        raise RuntimeError("CUDA error: device-side assert triggered")
        yield

    monkeypatch.setattr(Sums, "at_forward", look)
    with pytest.raises(RuntimeError, match="device-side assert"):
        Checks(program(), (Sums,)).at_forward(forward("DECODE"))
    too_long = forward("DECODE", counts={"input_ids": 18, "out_cache_loc": 2, "positions": 2})
    with pytest.raises(CheckFailed) as failed:
        Checks(program(), (Shapes, Sums)).at_forward(too_long)
    assert failed.value.check == "I1-shapes"
    assert "device-side assert" in str(failed.value.__cause__)


def test_a_state_that_can_not_be_looked_at_is_no_pass() -> None:
    broken = forward("DECODE", rows=torch.tensor([1, 99]))
    assert any(line.startswith("I8: the state is IndexError") for line in found("at_forward", broken))


def test_what_is_fetched_together_is_each_ones_own() -> None:
    one, other = forward("DECODE"), forward("DECODE", seq_lens=torch.tensor([11, 12]))
    replay = Replay("target", "DECODE", "DECODE", 4, 3, 3, 1, padded_slots=torch.tensor([7]))
    fetch(one, replay, other)
    assert (one.values("seq_lens"), other.values("seq_lens")) == (one.seq_lens.tolist(), [11, 12])
    assert (replay.values("padded_slots"), replay.values("padded_lengths")) == ([7], [])
    one.seq_lens = torch.tensor([0])
    assert one.values("seq_lens") != [0]  # not fetched again
