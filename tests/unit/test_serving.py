"""What the client makes of replies, and the line that it prints for each concurrency."""

import asyncio
import json

import httpx

from harness.configuration import EngineConfig
from harness.serving.client import ask
from harness.serving.line import Line, Reply
from harness.serving.questions import Questions


def reply_to(content: object, status: int = 200) -> Reply:
    """What becomes of the first question when the server answers with this."""
    question = Questions.of(EngineConfig(), 1, max_new_tokens=4)[0]
    transport = httpx.MockTransport(lambda _: httpx.Response(status, text=json.dumps(content)))

    async def one() -> Reply:
        async with httpx.AsyncClient(transport=transport, base_url="http://server") as client:
            return await ask(client, question)

    return asyncio.run(one())


RIGHT = list(Questions.of(EngineConfig(), 1, max_new_tokens=4)[0].answer)


def test_a_right_reply() -> None:
    reply = reply_to({"output_ids": RIGHT, "meta_info": {"spec_verify_ct": 2}})
    assert (reply.tokens, reply.decode_steps, reply.problem) == (4, 2, None)


def test_a_wrong_token_is_named() -> None:
    reply = reply_to({"output_ids": [*RIGHT[:2], 0, RIGHT[3]], "meta_info": {}})
    assert reply.problem == "wrong from output token 2: 4 tokens, must be 4"


def test_too_few_tokens() -> None:
    assert (
        reply_to({"output_ids": RIGHT[:3], "meta_info": {}}).problem == "wrong from output token 3: 3 tokens, must be 4"
    )


def test_an_error_of_the_server() -> None:
    problem = reply_to({}, status=500).problem
    assert problem is not None
    assert problem.startswith("HTTPStatusError")


def test_the_line_of_the_story() -> None:
    replies = [Reply(latency_s=0.5 + 0.1 * i, tokens=21, decode_steps=10, problem=None) for i in range(9)]
    line = Line(10, [*replies, Reply(2.0, 0, None, "ReadTimeout: ")], wall_s=2.1)
    assert str(line) == (
        "C= 10 | 10 requests | throughput:    90.0 tok/s | per-req:   25.6 tok/s | "
        "latency avg/p50/p99:    0.9/   0.9/   1.3s | ok: 9/10"
    )
    assert not line.ok
    assert Line(1, replies, wall_s=1.0).tokens_per_step == 2


def test_nothing_ok() -> None:
    line = Line(10, [Reply(0.1, 0, None, "ConnectError: refused")] * 10, wall_s=0.1)
    assert str(line).startswith("C= 10 | 10 requests | throughput:     0.0 tok/s | per-req:    0.0 tok/s")
    assert str(line).endswith("ok: 0/10")
    assert line.tokens_per_step is None
