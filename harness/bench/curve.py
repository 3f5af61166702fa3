"""Decode steps by batch size: a plain, a patched and an always-spec engine, all there at once, which take turns.

A measurement takes a fraction of a second, for a host's speed changes within seconds.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from time import monotonic

from harness.bench.contest import ALWAYS, PLAIN, room_for
from harness.bench.engines import EngineFailed, Engines, InProcess
from harness.bench.rounds import rotated
from harness.bench.stepping import STRETCH
from harness.bench.tasks import Stepped, Stepping, Wanted
from harness.configuration import EngineConfig, Worker
from harness.engine.device import Device

PATCHED = "patched"
PROMPT_TOKENS = 16
LEAST_ROUNDS = 2
"""One alone can't tell a slow engine from a slow moment of the host."""
PATIENCE_SECONDS = 240.0
"""For a boot, and for each measurement."""


@dataclass(frozen=True, slots=True)
class Curves:
    """The three engines' figures."""

    batch_sizes: tuple[int, ...]
    engines: dict[str, list[list[Stepped]]]
    """For each batch size one a round."""

    def ratios(self, threshold: int) -> Iterator[tuple[int, str, list[float]]]:
        """Patched step over that of the engine that it should be as quick as, round by round: size, engine, ratios."""
        for place, size in enumerate(self.batch_sizes):
            other = ALWAYS if size <= threshold else PLAIN
            pairs = zip(self.engines[PATCHED][place], self.engines[other][place], strict=True)
            yield size, other, [one.step_ms / two.step_ms for one, two in pairs]


def engines(config: EngineConfig, device: Device, gpu: str | None) -> Engines:
    """The three, in processes that see this GPU; `config` is the patched one's, its graphs the batch sizes."""
    roomy = room_for(config, PROMPT_TOKENS, [(max(config.graphs), STRETCH.tokens_needed(config))])
    configs = {
        PLAIN: roomy.untoggled.model_copy(update={"worker": Worker.NONE}),
        PATCHED: roomy,
        ALWAYS: roomy.untoggled,
    }
    make = partial(InProcess, device=device, gpu=gpu, patience_s=PATIENCE_SECONDS, quiet=True)
    return Engines({name: partial(make, of) for name, of in configs.items()})


def measure(running: Engines, sizes: tuple[int, ...], seconds: float, told: Callable[[int], None]) -> Curves:
    """Boot them, then rounds until `seconds` are over, two at least; `told` of the round, from 1, at each step of it.

    Raises EngineFailed where one ends or never answers, UsageError where one is refused.
    """
    until, turn = monotonic() + seconds, 0
    with running:
        running.boot()
        measured: dict[str, list[list[Stepped]]] = {name: [[] for _ in sizes] for name in (PLAIN, PATCHED, ALWAYS)}
        while turn < LEAST_ROUNDS or monotonic() < until:
            turn += 1
            for place, size in enumerate(sizes):
                for name in rotated(list(measured), turn + place):
                    told(turn)
                    measured[name][place].append(_stepped(running, name, size))
    return Curves(batch_sizes=sizes, engines=measured)


def _stepped(running: Engines, name: str, size: int) -> Stepped:
    said = running.ask(name, Wanted(stepping=Stepping(batch_size=size, prompt_tokens=PROMPT_TOKENS)))
    if said is None or said.stepped is None:
        raise EngineFailed(f"{name}: {running.failures[name]}")
    return said.stepped
