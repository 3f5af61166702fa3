"""Watch the replays of captured graphs: what each is given, and whether its tensors are where they were captured."""

import bisect
import dataclasses
from collections.abc import Callable, Iterator
from functools import partial
from operator import is_
from typing import Any

import torch

from harness.engine.v0_5_12.buffers import draft_worker, model_runners, toggle
from harness.engine.v0_5_12.later import copied
from harness.observation import Replay

POISON_LENGTH = 3
"""What lengths of padded rows are before a preparation: neither the fill length nor, by chance, harmless."""
RAGGED = ("DRAFT_EXTEND",)
"""Forward modes whose captured kernels take requests of fewer tokens than were captured."""

Saw = Callable[[Replay], None]


class GraphWatch:
    """Wraps the preparation or the replay of every graph runner of one scheduler."""

    def __init__(self, scheduler: Any) -> None:
        """Note where the captured tensors are; call right after boot."""
        self._scheduler = scheduler
        self._runners = list(graph_runners(scheduler))
        self._captured = {id(runner): _Captured(runner) for _, runner in self._runners}
        self._pages = scheduler.token_to_kv_pool_allocator.size

    def attach(self, saw: Saw) -> None:
        """Report each replay from now on."""
        for model, runner in self._runners:
            if hasattr(runner, "replay_prepare"):
                runner.replay_prepare = self._preparing(model, runner, runner.replay_prepare, saw)
            else:
                runner.replay = self._replaying(model, runner, runner.replay, saw)

    def detach(self) -> None:
        """Report no more."""
        for _, runner in self._runners:
            for name in ("replay_prepare", "replay"):
                vars(runner).pop(name, None)

    def _preparing(self, model: str, runner: Any, prepare: Callable[..., None], saw: Saw) -> Callable[..., None]:
        def watched(forward_batch: Any, *args: Any, **kwargs: Any) -> None:
            seen = self._replay(model, runner, forward_batch, runner.capture_forward_mode.name)
            padded = self._poison(runner, seen)
            try:
                prepare(forward_batch, *args, **kwargs)
            except Exception:
                saw(seen)  # what doesn't fit the graph raises while it is prepared; a check says it better
                raise
            seen.padded_slots, seen.padded_lengths = map(copied, padded)
            saw(seen)

        return watched

    def _replaying(self, model: str, runner: Any, replay: Callable[..., Any], saw: Saw) -> Callable[..., Any]:
        def watched(*args: Any, **kwargs: Any) -> Any:
            forward_batch = args[-1]
            mode = getattr(runner, "forward_mode", None)
            seen = self._replay(model, runner, forward_batch, mode.name if mode is not None else "DECODE")
            padded = self._poison(runner, seen)
            saw(seen)
            output = replay(*args, **kwargs)
            seen.padded_slots, seen.padded_lengths = map(copied, padded)
            if seen.padded_slots is not None:
                saw(seen)
            return output

        return watched

    def _poison(self, runner: Any, replay: Replay) -> tuple[torch.Tensor | None, torch.Tensor | None]:
        """Spoil the slots and lengths of padded rows, and return them, to be looked at once they are prepared."""
        buffers = runner.buffers
        if not hasattr(buffers, "out_cache_loc"):
            return None, None  # reads the target's
        each = len(buffers.out_cache_loc) // runner.max_bs
        first = replay.tokens if replay.ragged else replay.batch_size * each
        last = replay.captured_size * each
        if first >= last and replay.batch_size >= replay.captured_size:
            return None, None  # nothing is padded
        slots = buffers.out_cache_loc[first:last]
        lengths = buffers.seq_lens[replay.batch_size : replay.captured_size]
        slots.fill_(self._pages)
        lengths.fill_(POISON_LENGTH)
        return slots, lengths

    def _replay(self, model: str, runner: Any, forward_batch: Any, captured_mode: str) -> Replay:
        sizes, size = runner.capture_bs, forward_batch.batch_size
        index = bisect.bisect_left(sizes, size)
        captured = sizes[index] if index < len(sizes) else sizes[-1]
        # A draft's input_ids are made step by step in its graph; what the batch holds is left from before.
        tokens = size if model == "draft" else len(forward_batch.input_ids)
        listed, room = _kv_indices(runner, forward_batch, captured)
        return Replay(
            model=model,
            captured_mode=captured_mode,
            mode=forward_batch.forward_mode.name,
            captured_size=captured,
            batch_size=size,
            tokens=tokens,
            tokens_each=getattr(runner, "num_tokens_per_bs", 1) if captured_mode != "DECODE" else 1,
            ragged=captured_mode in RAGGED,
            fill_length=getattr(runner, "seq_len_fill_value", 1),
            listed=listed,
            room=room,
            moved=self._captured[id(runner)].moved(),
        )


def graph_runners(scheduler: Any) -> Iterator[tuple[str, Any]]:
    """Each runner of captured graphs, by the model that it runs: the target's, the draft's, those of plain steps."""
    draft, toggled = draft_worker(scheduler), toggle(scheduler)
    named = [
        ("target", model_runners(scheduler)[0].graph_runner),
        ("draft", getattr(draft, "cuda_graph_runner", None)),
        ("draft extend", getattr(draft, "cuda_graph_runner_for_draft_extend", None)),
    ]
    if toggled is not None:
        named += [("target", toggled.target.graphs), ("draft", toggled.draft.graphs)]
    return ((model, runner) for model, runner in named if runner is not None)


def _kv_indices(runner: Any, forward_batch: Any, captured: int) -> tuple[int, int | None]:
    """How many the longest of a draft's lists has (`generate_draft_decode_kv_indices`), and for how many is room."""
    backend, total = getattr(runner, "draft_attn_backend", None), forward_batch.seq_lens_sum
    if backend is None or not isinstance(total, int):
        return 0, None
    total += (captured - forward_batch.batch_size) * runner.seq_len_fill_value
    listed = backend.topk * (total + captured * backend.speculative_num_steps)
    return listed, backend.cuda_graph_kv_indices.shape[1]


class _Captured:
    """Where the tensors that a runner's graphs read were: its input buffers, and its attention backend's."""

    def __init__(self, runner: Any) -> None:
        self._runner = runner
        self._owners = _owners(runner)
        found = {prefix + key: (owner, key) for prefix, owner in self._owners for key in _tensors(owner)}
        self._names = list(found)
        self._look = [partial(vars(owner).get, key) for owner, key in found.values()]
        self._tensors = [look() for look in self._look]
        self._places = [tensor.data_ptr() for tensor in self._tensors]

    def moved(self) -> tuple[str, ...]:
        """Those that are elsewhere now."""
        owners = _owners(self._runner)
        if _same(owners, self._owners) and self._unmoved():
            return ()
        now = {prefix + key: tensor.data_ptr() for prefix, owner in owners for key, tensor in _tensors(owner).items()}
        return tuple(name for name, place in zip(self._names, self._places, strict=True) if now.get(name) != place)

    def _unmoved(self) -> bool:
        """Whether the same tensors are at the same places, as at nearly every replay."""
        now = [look() for look in self._look]
        return all(map(is_, now, self._tensors)) and list(map(torch.Tensor.data_ptr, now)) == self._places


def _owners(runner: Any) -> list[tuple[str, Any]]:
    """What keeps the tensors, and what their names begin with."""
    buffers = getattr(runner, "buffers", None)
    owners = [("", buffers)] if dataclasses.is_dataclass(buffers) else []
    for name in ("attn_backend", "draft_attn_backend", "draft_extend_attn_backend", "backend"):
        backend = getattr(runner, name, None)
        if backend is not None:
            owners += [(f"{name}.", part) for part in (backend, *getattr(backend, "attn_backends", ()))]
    return owners


def _same(owners: list[tuple[str, Any]], others: list[tuple[str, Any]]) -> bool:
    return len(owners) == len(others) and all(one[1] is other[1] for one, other in zip(owners, others, strict=True))


def _tensors(owner: Any) -> dict[str, torch.Tensor]:
    return {key: value for key, value in vars(owner).items() if isinstance(value, torch.Tensor)}
