"""The model pair's draft KV cache as a fresh prefill writes it, computed in torch, and how far another is off it."""

import functools
from collections.abc import Iterator

import torch

from fixtures.model_pair.architecture import Draft, Target
from fixtures.model_pair.checkpoint import load_draft, load_target
from harness.observation import DraftCache

CPU = torch.device("cpu")


@functools.cache
def _pair(device: torch.device) -> tuple[Target, Draft]:
    return load_target().to(device), load_draft().to(device)


def fresh(sequences: list[list[int]], device: torch.device = CPU) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Keys and values of a draft prefill of each sequence, (tokens - 1, heads, head size) float32, on `device`.

    Entry p is of token p + 1 and the target's hidden state at p. One forward of the target for all, as far as the draft
    needs it: attention is causal, so that what pads a shorter sequence isn't seen by it.
    """
    target, draft = _pair(device)
    longest = max(map(len, sequences))
    ids = torch.tensor([[*tokens, *[0] * (longest - len(tokens))] for tokens in sequences], device=device)
    with torch.inference_mode():
        embedded, hidden = target.model.embed_tokens(ids[:, 1:]), draft.fc(target.features(ids[:, :-1]))
        keys, values = draft.entries(embedded, hidden, torch.arange(longest - 1, device=device))
    return [
        (keys[row, :, : len(tokens) - 1].transpose(0, 1), values[row, :, : len(tokens) - 1].transpose(0, 1))
        for row, tokens in enumerate(sequences)
    ]


def differences(caches: list[DraftCache]) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Of each cache, how far its keys and its values are off, as shares of the largest right entry: (positions,) each.

    All are compared where they lie, and fetched in one transfer.
    """
    right = fresh([cache.tokens for cache in caches], caches[0].keys.device)
    of_keys = _off([cache.keys for cache in caches], [keys for keys, _ in right])
    of_values = _off([cache.values for cache in caches], [values for _, values in right])
    lengths = [len(cache.keys) for cache in caches]
    for keys, largest_key, values, largest_value in torch.split(torch.stack([*of_keys, *of_values]).cpu(), lengths, 1):
        yield keys / largest_key.max(), values / largest_value.max()


def _off(seen: list[torch.Tensor], right: list[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """(positions of all,) the largest difference of each position's entry, and the largest right entry there."""
    expected = torch.cat([entries[: len(mine)] for mine, entries in zip(seen, right, strict=True)])
    off = (torch.cat(seen).float() - expected).abs()
    return off.flatten(1).amax(1), expected.abs().flatten(1).amax(1)
