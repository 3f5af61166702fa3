"""The sampling kernels' references: what they draw is distributed as the target's probabilities say."""

from itertools import pairwise

import numpy
import pytest
import torch

from harness.emulation.kernels.sampling import (
    top_k_renorm_prob,
    top_p_renorm_prob,
    tree_speculative_sampling_target_only,
)
from harness.emulation.kernels.tree import build_tree_kernel_efficient, verify_tree_greedy
from tests.emulation.drafts import empty_outputs, random_draft, random_verification, verification_outputs

ROWS = 4000
CHI_SQUARE_999 = {2: 13.8, 3: 16.3, 4: 18.5, 5: 20.5}
"""0.999 quantiles by degrees of freedom."""


class Fork:
    """Root with children 1 and 2 (tokens 0 and 1), node 1 with child 3 (token 2); every row is the same tree."""

    vocabulary = 5
    tokens = (4, 0, 1, 2)
    next_token = (1, 3, -1, -1)
    next_sibling = (-1, 2, -1, -1)

    def __init__(self, rows: int, seed: int = 0, steps: int = 2) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.probs = torch.rand(4, self.vocabulary, generator=generator)
        self.probs /= self.probs.sum(-1, keepdim=True)
        self.coins = torch.rand(rows, 4, generator=generator)
        self.final_coins = torch.rand(rows, generator=generator)
        self.draft_probs = torch.zeros(rows, 4, self.vocabulary)
        self.rows, self.steps = rows, steps

    def verify(self, **thresholds: float) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Predicted token by node, accepted nodes, and number accepted, by row."""
        predicts, accept_index, accept_token_num = verification_outputs(self.rows, 4, self.steps)
        tree_speculative_sampling_target_only(
            predicts,
            accept_index,
            accept_token_num,
            self._each_row(self.tokens),
            torch.arange(self.rows * 4).view(self.rows, 4),
            self._each_row(self.next_token),
            self._each_row(self.next_sibling),
            self.coins,
            self.final_coins,
            self.probs.repeat(self.rows, 1, 1),
            self.draft_probs,
            **thresholds,
        )
        return predicts[:-1].view(self.rows, 4), torch.where(accept_index < 0, -1, accept_index % 4), accept_token_num

    def _each_row(self, values: tuple[int, ...]) -> torch.Tensor:
        return torch.tensor(values).repeat(self.rows, 1)


def assert_distributed(samples: torch.Tensor, probs: torch.Tensor) -> None:
    observed = torch.bincount(samples.long(), minlength=len(probs)).double()
    expected = probs.double() * len(samples)
    statistic = float(((observed - expected) ** 2 / expected).sum())
    assert statistic < CHI_SQUARE_999[len(probs) - 1], (observed, expected)


def test_every_next_token_is_drawn_from_the_target() -> None:
    """At the root and, where a child was accepted, after it: however the tree looks, the target alone decides."""
    fork = Fork(ROWS)
    predicts, accepted, _ = fork.verify()
    assert_distributed(predicts[:, 0], fork.probs[0])
    for node in (1, 2, 3):
        reached = (accepted == node).any(1)
        assert_distributed(predicts[reached, node], fork.probs[node])


def test_only_the_path_is_written() -> None:
    fork = Fork(200)
    predicts, accepted, count = fork.verify()
    for row in range(200):
        path = accepted[row][accepted[row] >= 0].tolist()
        assert len(path) == count[row] + 1
        assert path in ([0], [0, 1], [0, 2], [0, 1, 3])
        assert {node for node in range(4) if predicts[row, node] != -9} == set(path)
        for node, after in pairwise(path):
            assert predicts[row, node] == fork.tokens[after]


def test_rejected_tokens_are_noted_and_never_drawn() -> None:
    fork = Fork(500)
    predicts, accepted, _ = fork.verify()
    stopped = accepted[:, 1] == -1
    assert torch.equal(fork.draft_probs[stopped, 0, :2], fork.probs[0, :2].expand(int(stopped.sum()), 2))
    assert (predicts[stopped, 0] > 1).all()
    second = accepted[:, 1] == 2
    assert torch.equal(fork.draft_probs[second, 0, 0], fork.probs[0, 0].expand(int(second.sum())))
    assert not fork.draft_probs[second, 0, 1:].any()


def test_draft_probs_count_except_after_a_full_path() -> None:
    fork = Fork(300, steps=1)
    fork.draft_probs[:, :, 3] = 1.0
    predicts, accepted, _ = fork.verify()
    full = accepted[:, 1] == 1
    assert (predicts[~full & (accepted[:, 1] == -1), 0] != 3).all()
    assert (predicts[full, 1] == 3).any()


def test_threshold_single_accepts_whatever_the_coin() -> None:
    fork = Fork(50)
    fork.coins.fill_(1.0)
    _, accepted, _ = fork.verify(threshold_single=float(fork.probs[0, 1]) - 1e-4)
    first = 1 if fork.probs[0, 0] >= fork.probs[0, 1] - 1e-4 else 2
    assert (accepted[:, 1] == first).all()


def test_threshold_acc_scales_the_acceptance() -> None:
    fork = Fork(ROWS)
    share = float(fork.probs[0, 0])
    _, accepted, _ = fork.verify(threshold_acc=0.5)
    assert (accepted[:, 1] == 1).float().mean() == pytest.approx(min(1.0, 2 * share), abs=0.03)
    assert (Fork(50).verify(threshold_acc=0.0)[1][:, 1] == 1).all()


def test_thresholds_are_probabilities() -> None:
    with pytest.raises(RuntimeError, match="threshold_acc"):
        Fork(1).verify(threshold_acc=1.5)


@pytest.mark.parametrize("seed", range(10))
def test_certain_target_is_the_greedy_one(seed: int) -> None:
    rng = numpy.random.default_rng(seed)
    draft = random_draft(rng, nodes=0)
    batch, nodes, vocabulary = draft.seq_lens.numel(), draft.nodes, 8
    _, _, *links = empty_outputs(draft, nodes * nodes * batch)
    mask, positions = empty_outputs(draft, nodes * nodes * batch)[:2]
    build_tree_kernel_efficient(*draft.arguments(), mask, positions, *links, draft.topk, draft.depth, nodes, 1)
    candidates, target = random_verification(rng, batch, nodes, vocabulary)
    greedy, sampled = (verification_outputs(batch, nodes, draft.depth) for _ in range(2))
    verify_tree_greedy(*greedy, candidates, *links, target)
    probs = torch.nn.functional.one_hot(target, vocabulary).float()
    coins = torch.from_numpy(rng.uniform(0.01, 1.0, (batch, nodes))).float()
    tree_speculative_sampling_target_only(
        *sampled, candidates, *links, coins, coins[:, 0].contiguous(), probs, torch.zeros_like(probs)
    )
    for one, other in zip(greedy, sampled, strict=True):
        assert torch.equal(one, other)


def test_final_draw_at_the_ends() -> None:
    fork = Fork(3, steps=0)
    fork.probs[0] = torch.tensor([0.0, 0.4, 0.6, 0.0, 0.0])
    fork.final_coins[:] = torch.tensor([0.0, 0.5, 1.0])
    assert fork.verify()[0][:, 0].tolist() == [1, 2, 2], "never a token of probability zero"
    fork.probs.zero_()
    assert fork.verify()[0][:, 0].tolist() == [4, 4, 4], "the last token, where there is no mass"


def random_probs(seed: int, rows: int = 12, vocabulary: int = 30) -> torch.Tensor:
    probs = torch.rand(rows, vocabulary, generator=torch.Generator().manual_seed(seed)) ** 4
    return probs / probs.sum(-1, keepdim=True)


def kept_share(row: list[float], keep: list[bool]) -> list[float]:
    total = sum(value for value, kept in zip(row, keep, strict=True) if kept)
    return [value / total if kept else 0.0 for value, kept in zip(row, keep, strict=True)]


@pytest.mark.parametrize("top_k", [1, 5, 29, 30, 1 << 30, "each"])
def test_top_k(top_k: int | str) -> None:
    probs = random_probs(0)
    limits = torch.arange(1, 13, dtype=torch.int32) if top_k == "each" else torch.full((12,), int(top_k))
    result = top_k_renorm_prob(probs, limits if top_k == "each" else int(top_k))
    for row, limit, renormed in zip(probs.tolist(), limits.tolist(), result.tolist(), strict=True):
        rank = {value: place for place, value in enumerate(sorted(row, reverse=True))}
        assert renormed == pytest.approx(kept_share(row, [rank[value] < limit for value in row]), abs=1e-6)


@pytest.mark.parametrize("top_p", [1e-6, 0.3, 0.9, 1.0, "each"])
def test_top_p(top_p: float | str) -> None:
    probs = random_probs(1)
    limits = torch.linspace(0.05, 1.0, 12) if top_p == "each" else torch.full((12,), float(top_p))
    result = top_p_renorm_prob(probs, limits if top_p == "each" else float(top_p))
    for row, limit, renormed in zip(probs.tolist(), limits.tolist(), result.tolist(), strict=True):
        above = {value: sum(other for other in row if other > value) for value in row}
        keep = [above[value] < limit or limit == 1 for value in row]
        assert renormed == pytest.approx(kept_share(row, keep), abs=1e-6)


def test_ties_are_kept_together() -> None:
    probs = torch.tensor([[0.4, 0.2, 0.2, 0.2]])
    assert top_k_renorm_prob(probs, 2).tolist() == [pytest.approx([0.4, 0.2, 0.2, 0.2])]
    assert top_p_renorm_prob(probs, 0.5).tolist() == [pytest.approx([0.4, 0.2, 0.2, 0.2])]
    assert top_p_renorm_prob(probs, 0.39).tolist() == [pytest.approx([1.0, 0.0, 0.0, 0.0])]
