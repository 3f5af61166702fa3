"""References for the draft tree kernels of `sgl_kernel.speculative`.

Source of the facts: `sgl-kernel/csrc/speculative/eagle_utils.cu` of sgl-project/sglang, and the call sites in
`sglang/srt/speculative/eagle_utils.py`.
"""

import logging
from collections.abc import Iterator

import numpy
import torch

from harness.emulation.kernels.arguments import Array, expect, expect_shape, memory
from harness.emulation.opaque import opaque

logger = logging.getLogger(__name__)

FULL_MASK, QLEN_ONLY, QLEN_ONLY_BITPACKING = 0, 1, 2
ORPHAN = -1
"""In a list of parents: the parent was not selected (an invalid tree)."""


@opaque
def build_tree_kernel_efficient(
    parent_list: torch.Tensor,
    selected_index: torch.Tensor,
    verified_seq_len: torch.Tensor,
    tree_mask: torch.Tensor,
    positions: torch.Tensor,
    retrive_index: torch.Tensor,
    retrive_next_token: torch.Tensor,
    retrive_next_sibling: torch.Tensor,
    topk: int,
    depth: int,
    draft_token_num: int,
    tree_mask_mode: int,
) -> None:
    """Turn the drafted candidates that were selected into a tree (`sgl_kernel.build_tree_kernel_efficient`).

    Node 0 of each tree is the bonus token; node i is the candidate `selected_index[:, i - 1]`.

    Reads, int64:
        parent_list [bs, topk * (depth - 1) + 1]: the candidate that each group of topk candidates descends from. With
            depth 1 it may be [bs, 0], of any dtype: every node hangs on the root then, and it is never read.
        selected_index [bs, draft_token_num - 1]: ascending candidate indices.
        verified_seq_len [bs].
    Writes:
        tree_mask, bool or uint8, flat: FULL_MASK a [draft_token_num, seq_len + draft_token_num] block per request, of
            which only the last draft_token_num columns are written; QLEN_ONLY those columns alone.
            QLEN_ONLY_BITPACKING: 1, 2 or 4 bytes a node, bit j for node j, or-ed into what is there.
        positions [bs * draft_token_num] int64.
        retrive_index [bs, draft_token_num] int64.
        retrive_next_token, retrive_next_sibling [bs, draft_token_num] int64: the first child and the next sibling
            (both in ascending order of nodes); entries of nodes that have none are left as they are, so the caller
            fills them with -1.

    A node whose parent was not selected gets no parent to be reached from, and a warning, as in the kernel; the kernel
    then goes on to read and write out of bounds for its mask row and position, where this stops at the gap.
    """
    batch, nodes = parent_list.shape[0], draft_token_num
    _check_tree(selected_index, verified_seq_len, positions, batch, nodes)
    for name, output in (
        ("index", retrive_index),
        ("next_token", retrive_next_token),
        ("sibling", retrive_next_sibling),
    ):
        expect(f"retrive_{name}", output, torch.int64, 2)
        expect_shape(f"retrive_{name}", output, (batch, nodes))
    parents = _parents(parent_list, selected_index, topk)
    if (parents == ORPHAN).any():
        logger.warning("invalid eagle tree: a token with no parent token selected; the token will be ignored")
    ancestors = _ancestors(parents)
    seq_lens = verified_seq_len.numpy()
    positions.numpy()[: batch * nodes] = (seq_lens[:, None] + ancestors.sum(-1) - 1).reshape(-1)
    ancestors[:, :, 0] = True  # the kernel sets the root's column without a walk, for orphans too
    _write_mask(tree_mask, ancestors, seq_lens, tree_mask_mode)
    retrive_index.numpy()[:] = numpy.arange(batch * nodes).reshape(batch, nodes)
    _link(parents, retrive_next_token.numpy(), retrive_next_sibling.numpy())


def _check_tree(
    selected_index: torch.Tensor, seq_lens: torch.Tensor, positions: torch.Tensor, batch: int, nodes: int
) -> None:
    expect("selected_index", selected_index, torch.int64, 2)
    expect_shape("selected_index", selected_index, (batch, nodes - 1))
    expect("verified_seq_len", seq_lens, torch.int64, 1)
    expect_shape("verified_seq_len", seq_lens, (batch,))
    expect("positions", positions, torch.int64, 1)
    if positions.numel() < batch * nodes:
        raise IndexError(f"positions has {positions.numel()} elements, the kernel writes {batch * nodes}")


def _parents(parent_list: torch.Tensor, selected_index: torch.Tensor, topk: int) -> Array:
    """[bs, nodes]: each node's parent node, ORPHAN where that wasn't selected; the root is its own parent."""
    selected = selected_index.numpy()
    group = selected // topk  # group 0 descends from the root, group g from the candidate parent_list[g]
    parents = numpy.zeros((selected.shape[0], selected.shape[1] + 1), dtype=numpy.int64)
    if not group.any():
        return parents
    expect("parent_list", parent_list, torch.int64, 2)
    candidate = numpy.take_along_axis(parent_list.numpy(), group, axis=1)
    same = selected[:, None, :] == candidate[:, :, None]
    found = numpy.where(same.any(-1), same.argmax(-1) + 1, ORPHAN)
    parents[:, 1:] = numpy.where(group == 0, 0, found)
    return parents


def _ancestors(parents: Array) -> Array:
    """[bs, nodes, nodes] bool: [b, i, j] if node j is node i or above it."""
    batch, nodes = parents.shape
    above = numpy.zeros((batch, nodes, nodes), dtype=bool)
    rows, columns = numpy.indices((batch, nodes))
    at = numpy.broadcast_to(numpy.arange(nodes), (batch, nodes))
    for _ in range(nodes):
        reached = at != ORPHAN
        above[rows[reached], columns[reached], at[reached]] = True
        at = numpy.where(reached, numpy.take_along_axis(parents, numpy.maximum(at, 0), axis=1), ORPHAN)
        if (at <= 0).all():
            break
    else:
        raise RuntimeError("parent_list has a cycle: the kernel would never end")
    above[:, :, 0] |= at == 0
    return above


def _link(parents: Array, next_token: Array, next_sibling: Array) -> None:
    """Thread each node into its parent's list of children, the last node first."""
    for row, child, sibling in zip(parents.tolist(), next_token, next_sibling, strict=True):
        for node in range(len(row) - 1, 0, -1):
            parent = row[node]
            if parent == ORPHAN:
                continue
            if child[parent] != -1:
                sibling[node] = child[parent]
            child[parent] = node


def _write_mask(tree_mask: torch.Tensor, ancestors: Array, seq_lens: Array, mode: int) -> None:
    if mode == FULL_MASK:
        _write_full_mask(memory(tree_mask), ancestors, seq_lens)
    elif mode == QLEN_ONLY:
        mask = memory(tree_mask)
        _check_bound(mask, ancestors.size)
        mask[: ancestors.size] = ancestors.reshape(-1)
    elif mode == QLEN_ONLY_BITPACKING:
        _write_packed_mask(memory(tree_mask.view(torch.uint8)), ancestors)
    else:
        raise NotImplementedError(f"tree_mask_mode {mode}")


def _write_full_mask(mask: Array, ancestors: Array, seq_lens: Array) -> None:
    nodes = ancestors.shape[1]
    start = 0
    for tree, seq_len in zip(ancestors, seq_lens.tolist(), strict=True):
        end = start + nodes * (seq_len + nodes)
        _check_bound(mask, end)
        mask[start:end].reshape(nodes, seq_len + nodes)[:, seq_len:] = tree
        start = end


def _write_packed_mask(packed: Array, ancestors: Array) -> None:
    batch, nodes, _ = ancestors.shape
    if nodes > 32:
        raise NotImplementedError(f"QLEN_ONLY_BITPACKING packs 32 nodes at most, got {nodes}")
    width = 4 if nodes > 16 else 2 if nodes > 8 else 1
    _check_bound(packed, batch * nodes * width)
    bits = numpy.zeros((batch, nodes, width * 8), dtype=bool)
    bits[:, :, :nodes] = ancestors
    items = packed[: batch * nodes * width].reshape(batch, nodes, width)
    items[:, :, 0] = 0  # the first byte is assigned, the others are or-ed
    items |= numpy.packbits(bits, axis=-1, bitorder="little")


def _check_bound(mask: Array, end: int) -> None:
    if end > mask.size:
        raise IndexError(f"tree_mask holds {mask.size} elements, the kernel writes up to {end}")


@opaque
def verify_tree_greedy(
    predicts: torch.Tensor,
    accept_index: torch.Tensor,
    accept_token_num: torch.Tensor,
    candidates: torch.Tensor,
    retrive_index: torch.Tensor,
    retrive_next_token: torch.Tensor,
    retrive_next_sibling: torch.Tensor,
    target_predict: torch.Tensor,
) -> None:
    """Walk each tree along the target's greedy tokens (`sgl_kernel.verify_tree_greedy`).

    Reads, int64, [bs, nodes]: candidates, retrive_index (each node's flat index), retrive_next_token,
        retrive_next_sibling, target_predict (the target's token after each node, read by flat index).
    Writes, int32: accept_index [bs, spec_steps + 1] the flat indices of the accepted path, from the root;
        accept_token_num [bs] its length without the root; predicts [>= bs * nodes] the target's token at each node of
        the path. All other entries are left as they are.
    """
    check_verify_arguments(predicts, accept_index, accept_token_num, candidates, retrive_index)
    for name, tensor in (
        ("retrive_next_token", retrive_next_token),
        ("retrive_next_sibling", retrive_next_sibling),
        ("target_predict", target_predict),
    ):
        expect(name, tensor, torch.int64, 2)
        expect_shape(name, tensor, tuple(candidates.shape))
    target = target_predict.flatten().tolist()
    token, flat = candidates.tolist(), retrive_index.tolist()
    child, sibling = retrive_next_token.tolist(), retrive_next_sibling.tolist()
    steps = accept_index.shape[1]
    for row in range(candidates.shape[0]):
        path = [0]
        while len(path) < steps:
            wanted = target[flat[row][path[-1]]]
            agreeing = (node for node in children(child[row], sibling[row], path[-1]) if token[row][node] == wanted)
            node = next(agreeing, -1)
            if node == -1:
                break
            path.append(node)
        accepted = [flat[row][node] for node in path]
        write_path(predicts, accept_index, accept_token_num, row, accepted, [target[index] for index in accepted])


def children(child: list[int], sibling: list[int], parent: int) -> Iterator[int]:
    """The children of `parent`, in order; raise where the links run in a circle, in which the kernels never end."""
    node = child[parent]
    for _ in range(len(sibling)):
        if node == -1:
            return
        yield node
        node = sibling[node]
    if node != -1:
        raise RuntimeError(f"retrive_next_sibling runs in a circle below node {parent}: the kernel would never end")


def check_verify_arguments(
    predicts: torch.Tensor,
    accept_index: torch.Tensor,
    accept_token_num: torch.Tensor,
    candidates: torch.Tensor,
    retrive_index: torch.Tensor,
) -> None:
    """Raise unless the arguments common to both verify kernels have the dtypes and shapes that these demand."""
    expect("predicts", predicts, torch.int32, 1)
    expect("accept_index", accept_index, torch.int32, 2)
    expect("accept_token_num", accept_token_num, torch.int32, 1)
    expect("candidates", candidates, torch.int64, 2)
    expect("retrive_index", retrive_index, torch.int64, 2)
    expect_shape("retrive_index", retrive_index, tuple(candidates.shape))
    expect_shape("accept_token_num", accept_token_num, (candidates.shape[0],))
    expect_shape("accept_index", accept_index, (candidates.shape[0], accept_index.shape[1]))


def write_path(
    predicts: torch.Tensor,
    accept_index: torch.Tensor,
    accept_token_num: torch.Tensor,
    row: int,
    accepted: list[int],
    tokens: list[int],
) -> None:
    """Store one request's accepted path (flat indices, the root first) and the token that follows each of its nodes."""
    accept_index[row, : len(accepted)] = torch.tensor(accepted, dtype=torch.int32)
    accept_token_num[row] = len(accepted) - 1
    predicts[accepted] = torch.tensor(tokens, dtype=torch.int32)
