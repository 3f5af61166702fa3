"""References for the kernels behind sampling at a temperature: tree verification and renormalisation.

Sources of the facts: `sgl-kernel/csrc/speculative/speculative_sampling.cuh` of sgl-project/sglang,
`sgl_kernel/sampling.py` (which hands the renormalisation to FlashInfer's `sampling.cuh`, `air_top_p.cuh` and
`topk.cuh`), and the call sites `sglang/srt/speculative/{eagle_info,eagle_info_v2}.py`.
"""

import numpy
import torch

from harness.emulation.kernels.arguments import Array, expect, expect_shape
from harness.emulation.kernels.tree import check_verify_arguments, children, write_path
from harness.emulation.opaque import opaque

MINIMUM_THRESHOLD_ACC = numpy.float32(1e-9)
"""The kernel divides by threshold_acc, which it keeps at least this large."""


@opaque
def tree_speculative_sampling_target_only(
    predicts: torch.Tensor,
    accept_index: torch.Tensor,
    accept_token_num: torch.Tensor,
    candidates: torch.Tensor,
    retrive_index: torch.Tensor,
    retrive_next_token: torch.Tensor,
    retrive_next_sibling: torch.Tensor,
    uniform_samples: torch.Tensor,
    uniform_samples_for_final_sampling: torch.Tensor,
    target_probs: torch.Tensor,
    draft_probs: torch.Tensor,
    threshold_single: float = 1.0,
    threshold_acc: float = 1.0,
    deterministic: bool = True,
) -> None:
    """Accept a path of each tree by the target's probabilities (`sgl_kernel.tree_speculative_sampling_target_only`).

    At a node, its children are tried in order: one is accepted if the node's coin is at most the probability of the
    children tried so far, this one included, over threshold_acc, or if its own is at least threshold_single. The token
    after the path's last node is drawn from what the target leaves to tokens not tried there.

    Reads:
        candidates, retrive_index, retrive_next_token, retrive_next_sibling [bs, nodes] int64.
        uniform_samples [bs, nodes] float32: a coin per node. uniform_samples_for_final_sampling [bs] float32.
        target_probs [bs, nodes, vocab] float32: after each node.
    Writes:
        accept_index [bs, spec_steps + 1], accept_token_num [bs], predicts [>= bs * nodes], int32, as
            `verify_tree_greedy` does.
        draft_probs [bs, nodes, vocab] float32: target_probs at each (node, rejected token). SGLang passes zeros; other
            values are subtracted from target_probs before the final draw, except after a path of full length.

    `deterministic` picks how the kernel sums; the sums here are in float64, so a final draw whose coin falls within
    float32 rounding of a boundary may differ.
    """
    check_verify_arguments(predicts, accept_index, accept_token_num, candidates, retrive_index)
    _check_sampling(candidates, retrive_next_token, retrive_next_sibling, uniform_samples, target_probs, draft_probs)
    expect("uniform_samples_for_final_sampling", uniform_samples_for_final_sampling, torch.float32, 1)
    for name, threshold in (("threshold_single", threshold_single), ("threshold_acc", threshold_acc)):
        if not 0 <= threshold <= 1:
            raise RuntimeError(f"{name} must be within [0, 1], got {threshold}")
    flat = retrive_index.tolist()
    trees = zip(
        candidates.tolist(),
        retrive_next_token.tolist(),
        retrive_next_sibling.tolist(),
        uniform_samples.numpy(),
        target_probs.numpy(),
        draft_probs.numpy(),
        strict=True,
    )
    steps = accept_index.shape[1]
    for row, (tokens, child, sibling, coins, target, draft) in enumerate(trees):
        path = [0]
        while len(path) < steps:
            node = _accepted_child(
                path[-1], tokens, child, sibling, coins, target, draft, threshold_single, threshold_acc
            )
            if node == -1:
                break
            path.append(node)
        last = path[-1]
        rest = target[last] if len(path) == steps else target[last] - draft[last]
        bonus = _draw(rest, float(uniform_samples_for_final_sampling[row]))
        accepted = [flat[row][node] for node in path]
        write_path(
            predicts, accept_index, accept_token_num, row, accepted, [*(tokens[node] for node in path[1:]), bonus]
        )


def _check_sampling(
    candidates: torch.Tensor,
    retrive_next_token: torch.Tensor,
    retrive_next_sibling: torch.Tensor,
    uniform_samples: torch.Tensor,
    target_probs: torch.Tensor,
    draft_probs: torch.Tensor,
) -> None:
    tree = tuple(candidates.shape)
    for name, tensor, dtype in (
        ("retrive_next_token", retrive_next_token, torch.int64),
        ("retrive_next_sibling", retrive_next_sibling, torch.int64),
        ("uniform_samples", uniform_samples, torch.float32),
    ):
        expect(name, tensor, dtype, 2)
        expect_shape(name, tensor, tree)
    for name, probs in (("target_probs", target_probs), ("draft_probs", draft_probs)):
        expect(name, probs, torch.float32, 3)
        expect_shape(name, probs, (*tree, target_probs.shape[2]))


def _accepted_child(
    parent: int,
    tokens: list[int],
    child: list[int],
    sibling: list[int],
    coins: Array,
    target: Array,
    draft: Array,
    threshold_single: float,
    threshold_acc: float,
) -> int:
    """The first child of `parent` that is accepted, or -1; rejected ones are noted in `draft`. float32 throughout."""
    single = numpy.float32(threshold_single)
    scale = max(numpy.float32(threshold_acc), MINIMUM_THRESHOLD_ACC)
    tried = numpy.float32(0)
    for node in children(child, sibling, parent):
        probability = target[parent, tokens[node]]
        tried += probability
        if coins[parent] <= tried / scale or probability >= single:
            return node
        draft[parent, tokens[node]] = probability
    return -1


def _draw(weights: Array, coin: float) -> int:
    """The first token at which the cumulated positive weight exceeds `coin` times its total.

    If rounding leaves none, the last token with a positive weight; if all are zero, the last token.
    """
    positive = numpy.fmax(weights, 0)  # fmax, as on the device: a NaN counts as zero
    cumulated = numpy.cumsum(positive, dtype=numpy.float64)
    token = int(numpy.searchsorted(cumulated, coin * cumulated[-1], side="right"))
    if token < len(weights):
        return token
    valid = numpy.flatnonzero(positive)
    return int(valid[-1]) if len(valid) else len(weights) - 1


@opaque
def top_k_renorm_prob(probs: torch.Tensor, top_k: torch.Tensor | int) -> torch.Tensor:
    """Keep each row's top_k largest probabilities, and those equal to the last kept, and rescale to a sum of one.

    `sgl_kernel.top_k_renorm_prob`. probs [rows, vocab] float32; top_k a scalar or [rows]; values of vocab and more
    (SGLang's TOP_K_ALL) keep all. Returns a new tensor.
    """
    limits = _per_row(top_k, probs, torch.int64).clamp(1, probs.shape[1])
    descending = probs.sort(dim=-1, descending=True).values
    least = descending.gather(1, limits[:, None] - 1)
    return _renormalised(probs, probs >= least)


@opaque
def top_p_renorm_prob(probs: torch.Tensor, top_p: torch.Tensor | float) -> torch.Tensor:
    """Keep the fewest largest probabilities that sum to top_p, and those equal to the last kept, and rescale to one.

    `sgl_kernel.top_p_renorm_prob`. probs [rows, vocab] float32; top_p a scalar or [rows]; 1 keeps all. Returns a new
    tensor.
    """
    limits = _per_row(top_p, probs, torch.float64)[:, None]
    descending = probs.sort(dim=-1, descending=True).values
    before = descending.double().cumsum(-1) - descending  # the mass above each entry
    least = descending.masked_fill(before >= limits, torch.inf).amin(-1, keepdim=True)
    return _renormalised(probs, (probs >= least) | (limits >= 1))


def _per_row(limit: torch.Tensor | float, probs: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """`limit` as a tensor [rows]."""
    return torch.as_tensor(limit, device=probs.device).to(dtype).expand(probs.shape[0])


def _renormalised(probs: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
    """`probs` where `keep`, zero elsewhere, each row rescaled to a sum of one; a row of zeros stays as it is."""
    kept = probs.float() * keep
    total = kept.sum(-1, keepdim=True)
    return kept / total.masked_fill(total <= 1e-8, 1.0)
