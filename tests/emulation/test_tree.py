"""The tree kernels' references against trees walked node by node."""

import logging

import numpy
import pytest
import torch

from harness.emulation.kernels.tree import build_tree_kernel_efficient, verify_tree_greedy
from tests.emulation.drafts import (
    Draft,
    empty_outputs,
    mask_size,
    random_draft,
    random_verification,
    verification_outputs,
)

FULL_MASK, QLEN_ONLY, BITPACKING = range(3)


def build(draft: Draft, mode: int = FULL_MASK) -> list[torch.Tensor]:
    outputs = empty_outputs(draft, *mask_size(draft, mode))
    build_tree_kernel_efficient(*draft.arguments(), *outputs, draft.topk, draft.depth, draft.nodes, mode)
    return outputs


def path_to_root(parents: list[int], node: int) -> list[int]:
    path = [node]
    while path[-1] != 0:
        path.append(parents[path[-1]])
    return path


def children(parents: list[int], node: int) -> list[int]:
    return [child for child in range(1, len(parents)) if parents[child] == node]


def chain(batch: int = 1, nodes: int = 4) -> Draft:
    return random_draft(numpy.random.default_rng(0), batch=batch, topk=1, depth=nodes - 1, nodes=nodes)


@pytest.mark.parametrize("seed", range(25))
def test_links_and_positions(seed: int) -> None:
    draft = random_draft(numpy.random.default_rng(seed))
    _, positions, index, next_token, next_sibling = build(draft)
    assert index.flatten().tolist() == list(range(index.numel()))
    for row, parents in enumerate(draft.parents()):
        depths = [len(path_to_root(parents, node)) - 1 for node in range(draft.nodes)]
        start = int(draft.seq_lens[row])
        assert positions.view(-1, draft.nodes)[row].tolist() == [start + depth for depth in depths]
        for node in range(draft.nodes):
            below = children(parents, node)
            assert next_token[row, node] == (below[0] if below else -1)
            siblings = children(parents, parents[node]) if node else []
            after = [sibling for sibling in siblings if sibling > node]
            assert next_sibling[row, node] == (after[0] if after else -1)


@pytest.mark.parametrize("seed", range(10))
def test_masks(seed: int) -> None:
    draft = random_draft(numpy.random.default_rng(seed), batch=4, nodes=0)
    full, short = build(draft, FULL_MASK)[0], build(draft, QLEN_ONLY)[0].view(4, draft.nodes, draft.nodes)
    packed = build(draft, BITPACKING)[0].view(4, draft.nodes, -1) if draft.nodes <= 32 else None
    at = 0
    for row, parents in enumerate(draft.parents()):
        seq_len = int(draft.seq_lens[row])
        block = full[at : at + draft.nodes * (seq_len + draft.nodes)].view(draft.nodes, -1)
        at += block.numel()
        assert block[:, :seq_len].all(), "the prefix isn't written"
        for node in range(draft.nodes):
            expected = [other in path_to_root(parents, node) for other in range(draft.nodes)]
            assert block[node, seq_len:].tolist() == expected
            assert short[row, node].tolist() == expected
            if packed is not None:
                bits = int.from_bytes(bytes(packed[row, node].tolist()), "little")
                assert [bits >> other & 1 == 1 for other in range(draft.nodes)] == expected
    assert at == full.numel()


def test_mask_may_be_a_longer_buffer_of_bytes() -> None:
    draft = chain()
    buffer = torch.full((mask_size(draft, FULL_MASK)[0] + 50,), 1, dtype=torch.uint8)
    outputs = empty_outputs(draft, 0)
    build_tree_kernel_efficient(*draft.arguments(), buffer, *outputs[1:], 1, draft.depth, draft.nodes, FULL_MASK)
    assert torch.equal(buffer[:-50].bool(), build(draft)[0])
    assert buffer[-50:].all()


def test_single_node_needs_no_candidates() -> None:
    draft = Draft(
        topk=4,
        depth=1,
        nodes=1,
        parent_list=torch.empty(2, 0),
        selected_index=torch.empty(2, 0, dtype=torch.int64),
        seq_lens=torch.tensor([3, 5]),
        ancestry=numpy.empty((2, 0)),
    )
    mask, positions, index, next_token, next_sibling = build(draft)
    assert mask.all()
    assert positions.tolist() == [3, 5]
    assert index.tolist() == [[0], [1]]
    assert next_token.tolist() == next_sibling.tolist() == [[-1], [-1]]


def test_orphan_is_reached_from_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    """Candidate 6 (topk 2, second step) hangs on candidate 1, which was not selected."""
    draft = Draft(
        topk=2,
        depth=3,
        nodes=3,
        parent_list=torch.tensor([[-1, 0, 1, 2, 4]]),
        selected_index=torch.tensor([[0, 4]]),
        seq_lens=torch.tensor([7]),
        ancestry=numpy.empty((1, 0)),
    )
    with caplog.at_level(logging.WARNING):
        _, _, index, next_token, next_sibling = build(draft, QLEN_ONLY)
    assert "invalid eagle tree" in caplog.text
    assert index.tolist() == [[0, 1, 2]]
    assert next_token.tolist() == [[1, -1, -1]]
    assert next_sibling.tolist() == [[-1, -1, -1]]


def test_cycle_is_reported() -> None:
    draft = Draft(
        topk=1,
        depth=3,
        nodes=3,
        parent_list=torch.tensor([[-1, 2, 1]]),
        selected_index=torch.tensor([[1, 2]]),
        seq_lens=torch.tensor([7]),
        ancestry=numpy.empty((1, 0)),
    )
    with pytest.raises(RuntimeError, match="cycle"):
        build(draft)


def test_misread_arguments_are_reported() -> None:
    draft = chain()
    outputs = empty_outputs(draft, *mask_size(draft, FULL_MASK))
    tree = (draft.topk, draft.depth, draft.nodes, FULL_MASK)
    with pytest.raises(RuntimeError, match="verified_seq_len"):
        build_tree_kernel_efficient(draft.parent_list, draft.selected_index, draft.seq_lens.int(), *outputs, *tree)
    with pytest.raises(IndexError, match="tree_mask"):
        build_tree_kernel_efficient(*draft.arguments(), torch.ones(3, dtype=torch.bool), *outputs[1:], *tree)


def expected_path(parents: list[int], tokens: list[int], target: list[int], steps: int) -> list[int]:
    """From the root, always the first child that the target would have said, at most `steps` times."""
    path = [0]
    while len(path) <= steps:
        agreed = [child for child in children(parents, path[-1]) if tokens[child] == target[path[-1]]]
        if not agreed:
            break
        path.append(agreed[0])
    return path


@pytest.mark.parametrize("seed", range(25))
def test_greedy_path(seed: int) -> None:
    rng = numpy.random.default_rng(seed)
    draft = random_draft(rng)
    batch, nodes = draft.seq_lens.numel(), draft.nodes
    _, _, *links = build(draft)
    candidates, target = random_verification(rng, batch, nodes, vocabulary=4)
    predicts, accept_index, accept_token_num = outputs = verification_outputs(batch, nodes, draft.depth)
    verify_tree_greedy(*outputs, candidates, *links, target)
    expected = torch.full_like(predicts, -9)
    for row, parents in enumerate(draft.parents()):
        path = expected_path(parents, candidates[row].tolist(), target[row].tolist(), draft.depth)
        padding = [-1] * (draft.depth + 1 - len(path))
        assert accept_index[row].tolist() == [row * nodes + node for node in path] + padding
        assert accept_token_num[row] == len(path) - 1
        for node in path:
            expected[row * nodes + node] = target[row, node]
    assert torch.equal(predicts, expected)


def test_greedy_reports_a_circle_of_siblings() -> None:
    """What building a tree twice into links that weren't reset makes; the kernel hangs on it."""
    draft = chain()
    outputs = build(draft)
    build_tree_kernel_efficient(*draft.arguments(), *outputs, draft.topk, draft.depth, draft.nodes, FULL_MASK)
    candidates = torch.zeros(1, draft.nodes, dtype=torch.int64)
    with pytest.raises(RuntimeError, match="circle"):
        verify_tree_greedy(*verification_outputs(1, draft.nodes, draft.depth), candidates, *outputs[2:], candidates + 1)


def test_greedy_checks_its_dtypes() -> None:
    draft = chain()
    _, _, *links = build(draft)
    candidates, target = random_verification(numpy.random.default_rng(0), 1, draft.nodes, 4)
    predicts, accept_index, accept_token_num = verification_outputs(1, draft.nodes, draft.depth)
    with pytest.raises(RuntimeError, match=r"predicts.*int32"):
        verify_tree_greedy(predicts.long(), accept_index, accept_token_num, candidates, *links, target)
