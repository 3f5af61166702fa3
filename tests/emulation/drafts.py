"""Random drafts, as SGLang's draft loop makes them, and the trees that they stand for."""

from dataclasses import dataclass

import numpy
import torch


@dataclass(frozen=True)
class Draft:
    """The inputs of `build_tree_kernel_efficient`; `ancestry` is each candidate's parent candidate, -1 for the root."""

    topk: int
    depth: int
    nodes: int
    parent_list: torch.Tensor
    selected_index: torch.Tensor
    seq_lens: torch.Tensor
    ancestry: numpy.ndarray

    def arguments(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        return self.parent_list, self.selected_index, self.seq_lens

    def parents(self) -> list[list[int]]:
        """The parent node of each node, by request; the root's is itself."""
        rows = zip(self.selected_index.tolist(), self.ancestry.tolist(), strict=True)
        return [
            [0, *(0 if above[c] == -1 else selected.index(above[c]) + 1 for c in selected)] for selected, above in rows
        ]


def random_draft(rng: numpy.random.Generator, batch: int = 0, topk: int = 0, depth: int = 0, nodes: int = 0) -> Draft:
    """What `draft_forward` and `organize_draft_results` return for random probabilities; 0 means any size."""
    topk, depth, batch = (
        topk or int(rng.integers(1, 9)),
        depth or int(rng.integers(1, 8)),
        batch or int(rng.integers(1, 33)),
    )
    candidates = topk + (depth - 1) * topk * topk
    nodes = nodes or int(rng.integers(2, min(64, candidates + 1) + 1))
    scores = [rng.random((batch, topk))]
    ancestry = [numpy.full((batch, topk), -1)]
    beams = [numpy.broadcast_to(numpy.arange(topk), (batch, topk))]
    beam_scores = scores[0]
    for step in range(1, depth):
        expanded = (beam_scores[:, :, None] * rng.random((batch, topk, topk))).reshape(batch, -1)
        scores.append(expanded)
        ancestry.append(beams[-1].repeat(topk, axis=1))
        best = numpy.argsort(-expanded, axis=1)[:, :topk]
        beam_scores = numpy.take_along_axis(expanded, best, axis=1)
        beams.append(best + topk + (step - 1) * topk * topk)
    selected = numpy.sort(numpy.argsort(-numpy.concatenate(scores, axis=1), axis=1)[:, : nodes - 1], axis=1)
    if depth == 1:
        parent_list = torch.empty(batch, 0)
    else:
        parent_list = torch.from_numpy(
            numpy.ascontiguousarray(numpy.concatenate([numpy.full((batch, 1), -1), *beams[:-1]], axis=1))
        )
    return Draft(
        topk=topk,
        depth=depth,
        nodes=nodes,
        parent_list=parent_list,
        selected_index=torch.from_numpy(selected),
        seq_lens=torch.from_numpy(rng.integers(1, 300, batch)),
        ancestry=numpy.concatenate(ancestry, axis=1),
    )


def empty_outputs(draft: Draft, mask_numel: int, mask_dtype: torch.dtype = torch.bool) -> list[torch.Tensor]:
    """tree_mask, positions and the three retrive tensors, filled as SGLang fills them before the kernel."""
    batch = len(draft.seq_lens)
    mask = (
        torch.zeros(mask_numel, dtype=mask_dtype)
        if mask_dtype != torch.bool
        else torch.ones(mask_numel, dtype=torch.bool)
    )
    links = [torch.full((batch, draft.nodes), -1, dtype=torch.int64) for _ in range(3)]
    return [mask, torch.full((batch * draft.nodes,), -7, dtype=torch.int64), *links]


def mask_size(draft: Draft, mode: int) -> tuple[int, torch.dtype]:
    """Elements and dtype of tree_mask in each mode."""
    batch = len(draft.seq_lens)
    if mode == 0:
        return draft.nodes * int(draft.seq_lens.sum()) + draft.nodes**2 * batch, torch.bool
    if mode == 1:
        return draft.nodes**2 * batch, torch.bool
    width = 4 if draft.nodes > 16 else 2 if draft.nodes > 8 else 1
    return batch * draft.nodes * width, torch.uint8


def random_verification(
    rng: numpy.random.Generator, batch: int, nodes: int, vocabulary: int
) -> tuple[torch.Tensor, ...]:
    """candidates and target_predict over few tokens, so that paths of all lengths are accepted."""
    shape = (batch, nodes)
    return tuple(torch.from_numpy(rng.integers(0, vocabulary, shape)) for _ in range(2))


def verification_outputs(batch: int, nodes: int, steps: int) -> list[torch.Tensor]:
    """predicts (one longer than needed, as in v1), accept_index and accept_token_num, marked where not written."""
    return [
        torch.full((batch * nodes + 1,), -9, dtype=torch.int32),
        torch.full((batch, steps + 1), -1, dtype=torch.int32),
        torch.full((batch,), -9, dtype=torch.int32),
    ]
