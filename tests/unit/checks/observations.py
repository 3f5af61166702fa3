"""Observations in which everything is in order, to be spoilt."""

from dataclasses import replace

import torch

from harness.observation import After, Forward, Launch, Memory, Replay, Request
from harness.trace import TraceStep

VERIFIED = 4
"""Tokens that a verify gives each request."""


def step(mode: str = "TARGET_VERIFY", requests: tuple[int, ...] = (0, 1), **more: object) -> TraceStep:
    each = VERIFIED if mode == "TARGET_VERIFY" else 1
    settled = {"tokens_in": each * len(requests), "tokens_out": (1,) * len(requests)} | more
    return TraceStep(7, mode, requests, **settled)


def request(number: int, **more: object) -> Request:
    """With a prompt of 5 tokens and 3 of output: 7 are in the KV cache, the last is yet to be read."""
    usual = Request(
        number=number,
        row=number + 1,
        prompt=5,
        output=[20, 21, 22],
        committed=7,
        allocated=7,
        protected=0,
        in_flight=0,
        finished=False,
        retractions=0,
        prefilled=True,
    )
    return replace(usual, **more)


def table() -> torch.Tensor:
    """Request 0 (row 1) has slots 1 to 12, request 1 (row 2) has 13 to 24."""
    slots = torch.zeros(4, 12, dtype=torch.int32)
    slots[1], slots[2] = torch.arange(1, 13), torch.arange(13, 25)
    return slots


def forward(mode: str = "TARGET_VERIFY", **more: object) -> Forward:
    each = VERIFIED if mode == "TARGET_VERIFY" else 1
    lengths = [7, 7] if mode == "TARGET_VERIFY" else [8, 8]
    usual = Forward(
        step=step(mode),
        mode=mode,
        requests=(0, 1),
        counts=dict.fromkeys(("input_ids", "out_cache_loc", "positions"), 2 * each),
        tokens_each=each,
        seq_lens=torch.tensor(lengths),
        seq_lens_cpu=torch.tensor(lengths),
        seq_lens_sum=sum(lengths),
        input_ids=torch.full((2 * each,), 22),
        out_cache_loc=torch.cat([table()[1, 7 : 7 + each], table()[2, 7 : 7 + each]]).long(),
        rows=torch.tensor([1, 2]),
        table=table(),
        allocated=(11, 11),
        last_row=2,
    )
    return replace(usual, **more)


def launch(**more: object) -> Launch:
    usual = Launch(
        step=step(),
        requests=[request(0), request(1)],
        speculative=True,
        seq_lens=torch.tensor([7, 7]),
        seq_lens_cpu=torch.tensor([7, 7]),
        spec_rows={"topk_p": 2, "bonus_tokens": 2},
        bonus_tokens=torch.tensor([22, 22]),
    )
    return replace(usual, **more)


def replayed(**more: object) -> Replay:
    """Three requests on the graph of four."""
    usual = Replay(
        model="target",
        captured_mode="TARGET_VERIFY",
        mode="TARGET_VERIFY",
        captured_size=4,
        batch_size=3,
        tokens=3 * VERIFIED,
        tokens_each=VERIFIED,
        padded_slots=torch.zeros(VERIFIED, dtype=torch.int64),
        padded_lengths=torch.ones(1, dtype=torch.int64),
    )
    return replace(usual, **more)


def memory(**more: object) -> Memory:
    """Of 24 pages the two requests own 14, the radix cache 4 and the allocator 6."""
    usual = Memory(
        pages=24,
        page_size=1,
        free=torch.tensor([8, 9, 10, 20, 21, 22]),
        cached=torch.tensor([11, 12, 23, 24]),
        table=table(),
        free_rows=[3],
        rows=3,
        locked_tokens=0,
    )
    return replace(usual, **more)


def after(**more: object) -> After:
    usual = After(
        step=step(),
        requests=[request(0), request(1)],
        memory=memory(),
        idle=False,
        streamed={0: [20, 21, 22], 1: [20, 21, 22]},
    )
    return replace(usual, **more)


def idle(**more: object) -> After:
    """Nothing runs; what isn't free is cached."""
    free = torch.tensor([page for page in range(1, 25) if page not in (11, 12, 23, 24)])
    everything_back = memory(free=free, free_rows=[1, 2, 3])
    return replace(after(step=step("IDLE", ()), requests=[], memory=everything_back, idle=True, streamed={}), **more)
