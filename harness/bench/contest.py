"""What is compared: the engines by name, and the requests that each of them is given."""

from collections.abc import Sequence
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict

from harness.bench.tasks import Task
from harness.configuration import EngineConfig, Toggle, Worker
from harness.limits import INPUT_RESERVE, ahead, kv_tokens_needed
from harness.program import Submit

PLAIN, PLAIN_NO_OVERLAP, ALWAYS = "plain", "plain-no-overlap", "always-spec"
STRATEGIES: dict[str, Literal["warm", "plain"]] = {"warm": "warm", "plain-strategy": "plain"}
"""The toggled engines, by their strategy."""
DEFAULT_THRESHOLDS = {Worker.V1: 16, Worker.V2: 32}
"""A first guess, for models of some billion parameters on a large GPU: `bench threshold` makes a better one."""
WAVES, MORE_WAVES, MORE_UP_TO = 2, 4, 32
"""Times the concurrency that there are requests, unless their number is given; more at low ones, up to so many
requests, or a measurement would be over in half a second."""
WARM_UP_TOKENS = 8
"""Of each answer, in the run before the first that counts: kernels are compiled for their shapes."""
SEEDS_APART = 100_000
"""Between the prompts of one measurement and of the next, so that none finds its prefix in a server's cache."""


def engine_names(worker: Worker) -> tuple[str, ...]:
    """Those that there are: for v1 two plain ones, since v1's own loop has no overlap scheduling.

    They boot in this order; where memory runs short, the plain one of another loop is the one to miss.
    """
    if worker is Worker.V1:
        return (PLAIN_NO_OVERLAP, ALWAYS, *STRATEGIES, PLAIN)
    return (PLAIN, ALWAYS, *STRATEGIES)


class Contest(BaseModel):
    """Everything that decides what is measured; part of the results."""

    model_config = ConfigDict(frozen=True)

    config: EngineConfig
    """Of the always-spec engine."""
    threshold: int
    """Of the toggled ones."""
    engines: tuple[str, ...]
    prompt_tokens: int
    new_tokens: int
    accept_length: float | None = None
    """Simulated; None where the draft's own proposals count."""
    device: str
    """Its name."""
    server: bool = False
    """Whether each engine is a live server, asked over HTTP."""

    @property
    def plain_in_its_loop(self) -> str:
        """The plain engine whose loop is the toggle's own."""
        return PLAIN if self.config.overlap else PLAIN_NO_OVERLAP

    @property
    def known(self) -> bool:
        """Whether the closed form tells the right answers."""
        return self.config.models is None and self.accept_length is None

    @property
    def title(self) -> str:
        """What is measured, in one line."""
        config = self.config
        models = config.models.name if config.models else "the built-in pair"
        simulated = f", simulated acceptance {self.accept_length:g}" if self.accept_length is not None else ""
        return (
            f"{models} on {self.device}: worker {config.worker}, topk {config.topk}, {config.steps} steps, "
            f"{config.verified_tokens} tokens, {config.dtype}{simulated}, prompts of {self.prompt_tokens} tokens, "
            f"threshold {self.threshold}{', over HTTP' * self.server}"
        )

    def with_room_for(self, *needs: tuple[int, int]) -> Self:
        """The same, where each of `needs` fits: so many requests at once, and the tokens of their answers."""
        return self.model_copy(update={"config": room_for(self.config, self.prompt_tokens, needs)})

    def configs(self) -> dict[str, EngineConfig]:
        """Of each engine."""
        return {name: self.config.model_copy(update=self._changes(name)) for name in self.engines}

    def _changes(self, name: str) -> dict[str, object]:
        if name in STRATEGIES:
            return {"toggle": Toggle(threshold=self.threshold, strategy=STRATEGIES[name])}
        if name == ALWAYS:
            return {}
        return {"worker": Worker.NONE, "overlap": name == PLAIN}

    def held_at(self, concurrency: int, requests: int, number: int) -> Task:
        """Requests of one length at one concurrency."""
        return self.task((self.new_tokens,) * requests, (concurrency,) * requests, number)

    def warm_up(self, concurrency: int) -> Task:
        """As many requests as run at once, and one that joins."""
        requests = concurrency + 1
        return self.task((WARM_UP_TOKENS,) * requests, (concurrency,) * requests, 0)

    def task(self, lengths: tuple[int, ...], in_flight: tuple[int, ...], number: int) -> Task:
        """Measurement `number`, from 1: the same requests for every engine."""
        return Task(
            prompt_tokens=self.prompt_tokens,
            lengths=lengths,
            in_flight=in_flight,
            first_seed=number * SEEDS_APART,
            known=self.known,
        )


def requests_at(concurrency: int) -> int:
    """How many by default: whole waves, so that the last is as full as the first."""
    waves = min(MORE_WAVES, max(WAVES, MORE_UP_TO // concurrency))
    return waves * concurrency


def captured_up_to(running: int) -> tuple[int, ...]:
    """Batch sizes to capture: powers of 2, and the most that run."""
    return tuple(sorted({1 << power for power in range(running.bit_length())} | {running}))


def room_for(config: EngineConfig, prompt_tokens: int, needs: Sequence[tuple[int, int]]) -> EngineConfig:
    """A configuration with room for any of `needs`, as `Contest.with_room_for` says, with graphs up to the most."""
    running, longest = (max(column) for column in zip(*needs, strict=True))
    # Masks of a verify reach beyond the last token: a full batch at the end of its context wouldn't fit its graph's.
    context = prompt_tokens + longest + INPUT_RESERVE + ahead(config)
    roomy = config.model_copy(update={"context_length": context})
    return roomy.model_copy(
        update={
            "max_running_requests": running,
            "graphs": captured_up_to(running) if config.graphs else (),
            "kv_tokens": max(
                count * kv_tokens_needed(roomy, Submit(max_new_tokens=tokens), prompt_tokens) for count, tokens in needs
            ),
        }
    )
