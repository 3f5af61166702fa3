"""Watch v1's kernel that gives a draft its slots, `assign_draft_cache_locs` (speculative/spec_utils.py).

With pages and topk > 1 it gives wrong ones at times: cases/upstream/v1-draft-at-page-ends, v1-draft-locs-race.
"""

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from harness.fetched import Copy

WORKER, KERNEL = "sglang.srt.speculative.eagle_worker", "assign_draft_cache_locs"
PADDING = 0
"""The slot that is nobody's."""
RIGHT = -1


class DraftLocs:
    """What it gave wrongly, from `attach` to `detach`."""

    def __init__(self, scheduler: Any) -> None:
        args = scheduler.server_args
        self._concerned = args.page_size > 1 and (args.speculative_eagle_topk or 1) > 1
        self._seen: list[Copy] = []

    def attach(self) -> None:
        """Look at every launch from now on."""
        self.detach()
        if self._concerned:
            worker = importlib.import_module(WORKER)
            if hasattr(worker, KERNEL):  # a patch may have another
                setattr(worker, KERNEL, _Watched(getattr(worker, KERNEL), self._seen))

    def detach(self) -> None:
        """Look no more; again, nothing."""
        if self._concerned:
            worker = importlib.import_module(WORKER)
            while isinstance(kernel := getattr(worker, KERNEL, None), _Watched):
                setattr(worker, KERNEL, kernel.kernel)

    def wrong(self) -> tuple[bool, set[int]]:
        """Of the launches since this was asked last: whether drafts may be wrong, and slots that were written wrongly.

        Waits for the device, if there was one.
        """
        drafts, copies = (
            {slot for copy in self._seen for slot in copy.values(place).tolist()} - {RIGHT} for place in (0, 1)
        )
        self._seen.clear()
        written = (drafts | copies) - {PADDING}
        return bool(drafts or written), written


class _Launch(NamedTuple):
    """The kernel's arguments."""

    req_pool_indices: torch.Tensor
    req_to_token: torch.Tensor
    seq_lens: torch.Tensor
    extend_lens: torch.Tensor
    num_new_pages_per_topk: torch.Tensor
    out_cache_loc: torch.Tensor
    source_cache_loc: torch.Tensor
    target_cache_loc: torch.Tensor
    last_page_lens_cumsum: torch.Tensor
    duplicate_cache_len: int
    pool_len: int
    topk: int
    speculative_num_steps: int
    page_size: int
    bs_upper: int
    iter_upper: int


class _Watched:
    """Launched as the kernel is, `kernel[grid](...)`."""

    def __init__(self, kernel: Any, seen: list[Copy]) -> None:
        self.kernel, self._seen = kernel, seen

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
        def launch(*args: Any, **kwargs: Any) -> None:
            given = _as_sglang_does(grid, args) if not kwargs else None
            if given is None:
                self.kernel[grid](*args, **kwargs)
                return
            slots = given.out_cache_loc.clone()
            self.kernel[grid](*args)
            self._seen.append(Copy(*_wrong(given, slots)))

        return launch


def _as_sglang_does(grid: tuple[int, ...], args: tuple[Any, ...]) -> _Launch | None:
    """None for what a patch has made of the launch: whatever it does is the patch's."""
    if len(args) != len(_Launch._fields):
        return None
    given = _Launch(*args)
    of_requests = (given.req_pool_indices, given.seq_lens, given.extend_lens, given.num_new_pages_per_topk)
    fits = given.page_size > 1 and given.topk > 1 and all(tensor.shape == grid for tensor in of_requests)
    return given if fits else None


def _wrong(given: _Launch, slots: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """(entries,) int64 each, of slots to draft in and to copy to: RIGHT, or a slot that wasn't to be written to.

    Or PADDING, where a row has another slot for attention to read than was due. `slots` are all of the batch's, in
    order, before the kernel moved those that are drafted in to the front. Each branch of a request has pages of its
    own, which begin with a copy of what its last page holds.
    """
    topk, steps = given.topk, given.speculative_num_steps
    device, lengths = slots.device, given.seq_lens
    last = lengths % given.page_size
    branches = torch.arange(topk, device=device) * (given.num_new_pages_per_topk * given.page_size)[:, None]
    starts = (given.extend_lens.cumsum(0) - given.extend_lens)[:, None] + branches
    drafted = torch.arange(steps - 1, device=device)  # nothing is drafted in the last step's
    due = _at(slots, starts[..., None] + drafted)
    fronts = torch.arange(len(lengths) * topk, device=device).view(-1, topk, 1) * steps
    moved = _at(given.out_cache_loc, fronts + drafted)
    columns = (given.req_pool_indices * given.pool_len + lengths)[:, None] + branches
    listed = _at(given.req_to_token, columns[..., None] + drafted)
    places = torch.arange(given.page_size, device=device)
    copied_to = (starts - last[:, None])[:, 1:, None] + places
    copies_due = _at(slots, copied_to[(places < last[:, None, None]).expand_as(copied_to)])
    copies = given.target_cache_loc[: len(copies_due)]
    told = (topk - 1) * last.sum() == given.duplicate_cache_len  # else the host's lengths are others: a patch's doing
    drafts = torch.cat([torch.where(moved == due, RIGHT, moved), torch.where(listed == due, RIGHT, PADDING)])
    return (
        torch.where(told, drafts, RIGHT).flatten().long(),
        torch.where(told & (copies != copies_due[: len(copies)]), copies, RIGHT).long(),
    )


def _at(tensor: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    """Entries by their place in memory; a patch's lengths may lead beyond it, which is for the checks to say."""
    return tensor.flatten()[places.clamp(0, tensor.numel() - 1)]
