"""Watch v1's kernel that gives a draft its slots, `assign_draft_cache_locs` (speculative/spec_utils.py).

With pages and topk > 1 it gives wrong ones at times: cases/upstream/v1-draft-at-page-ends, v1-draft-locs-race.
"""

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from harness.fetched import on_host

WORKER, KERNEL = "sglang.srt.speculative.eagle_worker", "assign_draft_cache_locs"
RIGHT = -1


class DraftLocs:
    """The slots that it gave wrongly, from `attach` to `detach`."""

    def __init__(self, scheduler: Any) -> None:
        args = scheduler.server_args
        self._concerned = args.page_size > 1 and (args.speculative_eagle_topk or 1) > 1
        self._seen: list[torch.Tensor] = []

    def attach(self) -> None:
        """Look at every launch from now on."""
        if self._concerned:
            worker = importlib.import_module(WORKER)
            setattr(worker, KERNEL, _Watched(getattr(worker, KERNEL), self._seen))

    def detach(self) -> None:
        """Look no more; again, nothing."""
        if self._concerned:
            worker = importlib.import_module(WORKER)
            watched = getattr(worker, KERNEL)
            if isinstance(watched, _Watched):
                setattr(worker, KERNEL, watched.kernel)

    def wrong(self) -> set[int]:
        """Slots given wrongly since this was asked last, 0 among them where rows lack one; waits for the device."""
        seen, self._seen[:] = list(self._seen), ()
        return {slot for slots in on_host(*seen) for slot in slots} - {RIGHT}


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

    def __init__(self, kernel: Any, seen: list[torch.Tensor]) -> None:
        self.kernel, self._seen = kernel, seen

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
        def launch(*args: Any, **kwargs: Any) -> None:
            if kwargs or len(args) != len(_Launch._fields):  # another kernel, of a patch
                self.kernel[grid](*args, **kwargs)
                return
            given = _Launch(*args)
            slots = given.out_cache_loc.clone()
            self.kernel[grid](*args)
            self._seen.append(_wrong(given, slots))

        return launch


def _wrong(given: _Launch, slots: torch.Tensor) -> torch.Tensor:
    """(entries,) int64: RIGHT, or a slot that wasn't to be written to, or 0 where attention looks for another.

    `slots` are all of the batch's, in order, before the kernel moved those that are drafted in to the front. Each
    branch of a request has pages of its own, which begin with a copy of what its last page holds.
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
    found = [torch.where(moved == due, RIGHT, moved), torch.where(listed == due, RIGHT, 0)]
    if given.duplicate_cache_len:
        places = torch.arange(given.page_size, device=device)
        of_copies = (starts - last[:, None])[:, 1:, None] + places
        copies = _at(slots, of_copies[(places < last[:, None, None]).expand_as(of_copies)])
        copied = _at(given.target_cache_loc, torch.arange(len(copies), device=device))
        found.append(torch.where(copied == copies, RIGHT, copied))
    return torch.cat([entries.flatten().long() for entries in found])


def _at(tensor: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    """Entries by their place in memory; a patch's lengths may lead beyond it, which is for the checks to say."""
    return tensor.flatten()[places.clamp(0, tensor.numel() - 1)]
