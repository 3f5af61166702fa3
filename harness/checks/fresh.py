"""The model pair's draft KV cache as a fresh prefill writes it, computed in torch."""

import functools

import torch

from fixtures.model_pair.architecture import Draft, Target
from fixtures.model_pair.checkpoint import load_draft, load_target

CPU = torch.device("cpu")


@functools.cache
def _pair(device: torch.device) -> tuple[Target, Draft]:
    return load_target().to(device), load_draft().to(device)


def fresh(sequences: list[list[int]], device: torch.device = CPU) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Keys and values of a draft prefill of each sequence, (tokens - 1, heads, head size) float32, on `device`.

    Entry p is of token p + 1 and the target's hidden state at p. One forward for all: attention is causal, so that
    what pads a shorter sequence isn't seen by it.
    """
    target, draft = _pair(device)
    longest = max(map(len, sequences))
    ids = torch.tensor([[*tokens, *[0] * (longest - len(tokens))] for tokens in sequences], device=device)
    with torch.no_grad():
        features = target(ids[:, :-1]).features
        embedded = target.model.embed_tokens(ids[:, 1:])
        cache = draft(embedded, draft.fc(features), torch.arange(longest - 1, device=device)).cache
    keys, values = cache
    return [
        (keys[row, :, : len(tokens) - 1].transpose(0, 1), values[row, :, : len(tokens) - 1].transpose(0, 1))
        for row, tokens in enumerate(sequences)
    ]
