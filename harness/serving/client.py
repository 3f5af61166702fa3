"""A client that keeps a number of requests in flight and knows the right answer to each."""

import asyncio
import statistics
import time
from dataclasses import dataclass

import httpx

from harness.configuration import EngineConfig
from harness.engine.v0_5_12 import http
from harness.oracle import answer_to, first_difference
from harness.program import Submit
from harness.prompts import Prompt

REQUEST_S = 300.0
PERIODS = (9, 14, 23, 31, 47)


@dataclass(frozen=True, slots=True)
class Reply:
    """What became of one request."""

    latency_s: float
    tokens: int
    decode_steps: int | None
    problem: str | None
    """Why it isn't ok; None if every token is right."""


@dataclass(frozen=True, slots=True)
class Line:
    """All replies at one concurrency."""

    concurrency: int
    replies: list[Reply]
    wall_s: float

    @property
    def ok(self) -> bool:
        """Whether every request got its right answer."""
        return all(reply.problem is None for reply in self.replies)

    @property
    def tokens_per_step(self) -> float | None:
        """Tokens of a request in one decode step: 1 when plain; None from a server that doesn't speculate."""
        steps = [reply.decode_steps for reply in self.replies if reply.decode_steps]
        # The first token comes from the prefill.
        return sum(reply.tokens - 1 for reply in self.replies) / sum(steps) if steps else None

    def __str__(self) -> str:
        right = [reply for reply in self.replies if reply.problem is None]
        latencies = [reply.latency_s for reply in right] or [0.0]
        throughput = sum(reply.tokens for reply in right) / self.wall_s
        each = statistics.mean([reply.tokens / reply.latency_s for reply in right] or [0.0])
        return (
            f"C={self.concurrency:3d} | {len(self.replies)} requests | throughput: {throughput:7.1f} tok/s | "
            f"per-req: {each:6.1f} tok/s | latency avg/p50/p99: {statistics.mean(latencies):6.1f}/"
            f"{_percentile(latencies, 50):6.1f}/{_percentile(latencies, 99):6.1f}s | "
            f"ok: {len(right)}/{len(self.replies)}"
        )


@dataclass(frozen=True, slots=True)
class Question:
    """A request and its right answer."""

    submit: Submit
    prompt: tuple[int, ...]
    answer: tuple[int, ...]


class Questions(list[Question]):
    """What is asked at each concurrency."""

    @classmethod
    def of(cls, config: EngineConfig, count: int, max_new_tokens: int) -> "Questions":
        """Requests of the model pair's own language, each with another prompt."""
        made = cls()
        for number in range(count):
            period = PERIODS[number % len(PERIODS)]
            prompt = Prompt(period=period, seed=number, length=period + 3)
            submit = Submit(prompt=prompt, max_new_tokens=max_new_tokens)
            answer = answer_to(config, submit, prompt).tokens
            assert answer is not None  # greedy
            made.append(Question(submit, prompt.tokens(), answer))
        return made


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
    return Reply(latency, len(tokens), http.decode_steps(content), _problem(tokens, question.answer))


def _problem(tokens: list[int], right: tuple[int, ...]) -> str | None:
    if tuple(tokens) == right:
        return None
    return f"wrong from output token {first_difference(tokens, right)}: {len(tokens)} tokens, must be {len(right)}"


def _percentile(values: list[float], percent: int) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(percent / 100 * (len(ordered) - 1)))]
