"""A client that keeps a number of requests in flight and knows the right answer to each."""

import asyncio
import time

import httpx

from harness.engine.v0_5_12 import http
from harness.serving.line import Line, Reply
from harness.serving.questions import Question, Questions

REQUEST_S = 300.0


def ask_all(url: str, questions: Questions, concurrency: int) -> Line:
    """Ask every question, `concurrency` at a time."""
    return asyncio.run(_ask_all(url, questions, concurrency))


async def _ask_all(url: str, questions: Questions, concurrency: int) -> Line:
    free = asyncio.Semaphore(concurrency)
    limits = httpx.Limits(max_connections=concurrency)
    async with httpx.AsyncClient(base_url=url, timeout=REQUEST_S, limits=limits) as client:

        async def one(question: Question) -> Reply:
            async with free:
                return await ask(client, question)

        started = time.perf_counter()
        replies = await asyncio.gather(*map(one, questions))
        return Line(concurrency, list(replies), time.perf_counter() - started)


async def ask(client: httpx.AsyncClient, question: Question) -> Reply:
    """Ask one question and compare the answer."""
    started = time.perf_counter()
    try:
        response = await client.post(http.GENERATE, json=http.body(question.submit, question.prompt))
        response.raise_for_status()
    except httpx.HTTPError as error:
        return Reply(time.perf_counter() - started, 0, None, f"{type(error).__name__}: {error}")
    latency, content = time.perf_counter() - started, response.json()
    tokens = http.tokens(content)
    return Reply(latency, len(tokens), http.decode_steps(content), question.problem(tokens))
