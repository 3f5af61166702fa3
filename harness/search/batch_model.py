"""A cheap model of the decode batch, for steering while a program is generated: no engine, never exact.

It knows how many requests may run, that prefills come before decodes, and how many tokens a step gives: one if plain,
and in a spec step what the model pair's closed form says is accepted. KV memory is counted roughly, and there are no
prefix-cache hits.
"""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from typing import Self

from harness.configuration import EngineConfig
from harness.limits import a_step, whole_pages
from harness.oracle import answer_to
from harness.program import Submit
from harness.prompts import Prompt, proposable
from harness.search.upstream import safe_steps
from harness.toggle.policy import Policy, Switch

LIKELY = 0.7
"""Share of their length limits that SGLang expects requests to reach (SGLANG_INIT_NEW_TOKEN_RATIO)."""
MOST_STEPS = 200
"""Steps after which looking ahead gives up."""


@dataclass(slots=True)
class Request:
    """One request as the model sees it."""

    number: int
    prompt_tokens: int
    answer: tuple[int, ...]
    """All the tokens that it will have streamed at its end."""
    draft_after: tuple[int, ...]
    """After each number of output tokens, how many draft tokens a spec step accepts."""
    safe_steps: int | None
    """Steps after its submission within which it may be aborted; None for any number."""
    prefilled: int = 0
    produced: int = 0
    age: int = 0
    """Steps since it was submitted."""
    ended_at: int | None = None
    """The step that gave it its last token."""

    @property
    def abortable(self) -> bool:
        """Whether SGLang answers an abort right now."""
        return self.safe_steps is None or self.age <= self.safe_steps

    def take(self, count: int, step: int) -> None:
        """Receive `count` tokens in a step, as far as the answer goes."""
        self.produced = min(self.produced + count, len(self.answer))
        if self.produced == len(self.answer):
            self.ended_at = step


class BatchModel:
    """What waits and what runs after each operation."""

    def __init__(self, config: EngineConfig) -> None:
        self.config = config
        toggle = config.toggle
        self._switch = None if toggle is None else Switch(Policy(toggle.threshold, toggle.hysteresis))
        self._step = 0
        self.waiting: list[Request] = []
        self.running: list[Request] = []
        self.submitted = 0
        self.speculated: bool | None = None
        """Whether the last decode step was a spec step; None before the first."""
        self.switched_off = False
        """Whether a plain step has followed a spec step."""

    @property
    def most_speculating(self) -> int:
        """The largest batch size at which the next decode step speculates; without a toggle, any."""
        toggle = self.config.toggle
        if toggle is None:
            return self.config.max_running_requests
        return toggle.threshold - (toggle.hysteresis if self.speculated is False else 0)

    @property
    def present(self) -> list[Request]:
        """All that have been submitted and haven't ended, oldest first."""
        going_on = [request for request in (*self.running, *self.waiting) if request.ended_at is None]
        return sorted(going_on, key=lambda request: request.number)

    @property
    def size(self) -> int:
        """Requests in the decode batch once all that fit are prefilled."""
        return min(len(self.present), self.config.max_running_requests)

    @property
    def settled(self) -> bool:
        """Whether the next step isn't a prefill."""
        self._leave()
        return not self._admissible()

    def submit(self, submit: Submit) -> None:
        """The requests of a submission, each with a `Prompt` of its own, enter the queue."""
        safe = safe_steps(self.config, submit)
        for prompt in submit.family():
            self.waiting.append(_request(self.config, submit, prompt, self.submitted, safe))
            self.submitted += 1

    def abort(self, number: int) -> None:
        """A request is gone at once; a running one really stays for another step."""
        self.waiting = [request for request in self.waiting if request.number != number]
        self.running = [request for request in self.running if request.number != number]

    def retract(self) -> None:
        """The youngest goes back to the queue; really at the next decode."""
        self._leave()
        if len(self.running) > 1:
            request = self.running.pop()
            request.prefilled = 0
            self.waiting.append(request)

    def drain(self) -> None:
        """Everything ends."""
        for _ in range(MOST_STEPS):
            if not (self.waiting or self.running):
                return
            self.step()
        self.waiting, self.running = [], []

    def step(self) -> None:
        """One iteration of the scheduler's loop."""
        self._leave()
        for request in [*self.waiting, *self.running]:
            request.age += 1
        if self._admissible():
            self._prefill()
        elif self.running:
            self._make_room()
            self._decode()
        self._step += 1

    def steps_until(self, reached: Callable[["BatchModel"], bool]) -> int:
        """Steps after which something holds; `MOST_STEPS` where it doesn't come to that."""
        ahead = self.copy()
        for count in range(MOST_STEPS):
            if reached(ahead):
                return count
            ahead.step()
        return MOST_STEPS

    def copy(self) -> Self:
        """A model that goes on from here on its own."""
        other = copy(self)
        other._switch = copy(self._switch)
        other.waiting, other.running = ([replace(r) for r in requests] for requests in (self.waiting, self.running))
        return other

    def _leave(self) -> None:
        """Requests that ended are taken out before a step; with overlap scheduling a step later."""
        lag = 1 if self.config.overlap else 0
        self.running = [r for r in self.running if r.ended_at is None or r.ended_at + lag >= self._step]

    def _admissible(self) -> bool:
        if not self.waiting or len(self.running) >= self.config.max_running_requests:
            return False
        first = self.waiting[0]
        # SGLang asks for room for the whole of a newcomer, and most of what the others may still get; a chunked request
        # has its room already.
        to_come = sum(len(request.answer) - request.produced for request in self.running)
        needed = first.prompt_tokens + len(first.answer) + self.config.page_size + LIKELY * to_come
        return first.prefilled > 0 or not self.running or needed < self._free()

    def _free(self) -> int:
        """KV tokens, were all that the prefix cache has evicted."""
        held = (self._paged(request.prompt_tokens + request.produced) for request in self.running)
        return self.config.kv_tokens - sum(held)

    def _paged(self, tokens: int) -> int:
        return whole_pages(tokens, self.config.page_size)

    def _prefill(self) -> None:
        budget = self.config.chunked_prefill_size or self.config.kv_tokens
        while budget > 0 and self._admissible():
            request = self.waiting[0]
            total = request.prompt_tokens + request.produced
            chunk = min(budget, total - request.prefilled)
            budget -= self._paged(chunk)
            request.prefilled += chunk
            if request.prefilled < total:
                return
            request.take(1, self._step)
            self.running.append(self.waiting.pop(0))

    def _make_room(self) -> None:
        """Retract from the back while the next decode wouldn't find the slots that it allocates ahead."""
        ahead = a_step(self.config) * (2 if self.config.overlap else 1)
        while len(self.running) > 1 and self._free() < len(self.running) * self._paged(ahead):
            self.retract()

    def _decode(self) -> None:
        before = self.speculated
        self.speculated = self.config.speculative and (
            self._switch is None or self._switch.speculates(len(self.running))
        )
        self.switched_off |= before is True and not self.speculated
        for request in self.running:
            if request.ended_at is None:
                request.take(1 + (request.draft_after[request.produced] if self.speculated else 0), self._step)


def _request(config: EngineConfig, submit: Submit, prompt: Prompt, number: int, safe: int | None) -> Request:
    # Of a request whose tokens are drawn this is a guess like any other.
    answer = answer_to(config, submit, prompt).tokens or ()
    following = prompt.sequence(prompt.length + len(answer) + config.steps)[prompt.length :]
    return Request(number, prompt.length, answer, _accepted(following, config.steps), safe)


def _accepted(following: tuple[int, ...], steps: int) -> tuple[int, ...]:
    """For each place the number of leading tokens from there that can be proposed, at most `steps`."""
    counts = [0]
    for token in reversed(following):
        counts.append(min(counts[-1] + 1, steps) if proposable(token) else 0)
    return tuple(reversed(counts))
