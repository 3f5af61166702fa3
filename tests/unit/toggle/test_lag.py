"""What strategy plain keeps of plain steps, and how it says how far the draft has come."""

from types import SimpleNamespace

import pytest
import torch

from harness.toggle.drafted import caught_up, commit_drafted, drafted_len, fall_behind
from harness.toggle.kept import Kept
from harness.toggle.spans import Span, chunks


def test_a_request_lags_from_its_first_plain_step_until_it_is_caught_up() -> None:
    request = SimpleNamespace()
    assert (drafted_len(request, 20), commit_drafted(20, request)) == (20, 20)
    assert [fall_behind(request, length) for length in (21, 22, 23)] == [1, 2, 3]
    assert (drafted_len(request, 23), commit_drafted(23, request)) == (20, 20)
    assert commit_drafted(7, request) == 7  # what SGLang itself keeps out stays out
    caught_up([request])
    assert (drafted_len(request, 23), commit_drafted(23, request)) == (23, 23)
    assert fall_behind(request, 24) == 1


def test_a_ring_gives_back_the_last_positions_of_each_row() -> None:
    kept = Kept.empty(rows=4, each=3, width=2, dtype=torch.float32, device=torch.device("cpu"))
    rows = torch.tensor([3, 1])
    for position in range(5, 9):
        positions = torch.tensor([position, position + 10])
        kept.keep(rows, positions, positions.to(torch.int32) * 100, positions[:, None] + torch.tensor([0.0, 0.5]))
    tokens, hidden_states = kept.take(torch.tensor([3, 3, 3, 1]), torch.tensor([6, 7, 8, 17]))
    assert tokens.tolist() == [600, 700, 800, 1700]
    assert hidden_states.tolist() == [[6, 6.5], [7, 7.5], [8, 8.5], [17, 17.5]]
    assert kept.tokens.view(4, 3)[[0, 2]].count_nonzero() == 0


@pytest.mark.parametrize("most", [1, 2, 3, 5, 7, 100])
def test_chunks_cover_the_spans_in_order(most: int) -> None:
    spans = [Span(0, 10, 14), Span(2, 3, 4), Span(5, 0, 6)]
    cut = list(chunks(spans, most))
    assert all(sum(span.end - span.start for span in chunk) == most for chunk in cut[:-1])
    assert all(len({span.place for span in chunk}) == len(chunk) for chunk in cut)
    covered = [(span.place, position) for chunk in cut for span in chunk for position in range(span.start, span.end)]
    assert covered == [(span.place, position) for span in spans for position in range(span.start, span.end)]


def test_nothing_to_catch_up_is_no_forward() -> None:
    assert list(chunks([], 8)) == []
