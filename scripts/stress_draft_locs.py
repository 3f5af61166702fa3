#!/usr/bin/env python3
"""How often `assign_draft_cache_locs` contradicts itself on a GPU: case upstream/v1-draft-locs-race.

    PYTHONPATH=. python scripts/stress_draft_locs.py [SECONDS]

The kernel writes the slots of a draft into rows of `ReqToTokenPool` and then reads them from there, other threads than
wrote them, with no barrier between. What it gives out is compared with what it was given, by one process that has the
GPU to itself and by six that share it, and of the kernel with a barrier, too. Exit code 1 if the latter is ever wrong.
With two requests part 3 moves nothing that part 1 may still want: the case's other race isn't in it.
"""

import subprocess
import sys
from typing import Any

import torch

from tests.emulation.triton_source import kernels_of

PAGE, TOPK, STEPS, REPEATS, PROCESSES = 64, 2, 3, 100, 6
LENGTHS = (102, 102)
"""Tokens in the cache of each request, as in the program that a validation found."""
BARRIER_BEFORE = "    # XXX (MUSA): Triton issue"
"""Where part 2 of the kernel begins."""


def kernel(mended: bool) -> Any:
    """SGLang's own, or that with a barrier between parts 1 and 2."""
    found = kernels_of("speculative/spec_utils.py").assign_draft_cache_locs
    if found.src.count(BARRIER_BEFORE) != 1:
        sys.exit("assign_draft_cache_locs isn't as in sglang 0.5.12.post1: install that release")
    if mended:
        found._unsafe_update_src(found.src.replace(BARRIER_BEFORE, f"    tl.debug_barrier()\n{BARRIER_BEFORE}"))
    return found


class Stress:
    """One launch, again and again in a CUDA graph, and how often each of its results was wrong."""

    def __init__(self, mended: bool) -> None:
        lengths = torch.tensor(LENGTHS, device="cuda")
        last, pages = lengths % PAGE, (lengths % PAGE + STEPS + PAGE - 1) // PAGE
        extends = pages * PAGE * TOPK - last
        rows = torch.arange(len(LENGTHS), device="cuda")
        table = torch.zeros(len(LENGTHS), 524, dtype=torch.int32, device="cuda")
        slots = 1000 + torch.arange(int(extends.sum()), device="cuda")
        duplicates = int(last.sum()) * (TOPK - 1)
        source, target = torch.zeros(2, duplicates, dtype=torch.int32, device="cuda")
        packed = slots.clone()
        branches = (extends.cumsum(0) - extends)[:, None] + torch.arange(TOPK, device="cuda") * (pages * PAGE)[:, None]
        drafted = slots[branches[..., None] + torch.arange(STEPS, device="cuda")].flatten()
        ends, counts = branches[:, 1:].flatten().tolist(), last.repeat_interleave(TOPK - 1).tolist()
        copied = torch.cat([slots[end - count : end] for end, count in zip(ends, counts, strict=True)])
        self.wrong = torch.zeros(2, dtype=torch.int64, device="cuda")
        launched = kernel(mended)[(len(LENGTHS),)]

        def once() -> None:
            table.zero_()
            packed.copy_(slots)
            launched(
                rows, table, lengths, extends, pages, packed, source, target, last.cumsum(0), duplicates,
                table.shape[1], TOPK, STEPS, PAGE, 2, 128,
            )  # fmt: skip
            self.wrong[0] += (packed[: len(drafted)] != drafted).any()
            self.wrong[1] += (target != copied).any()

        once()
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            for _ in range(REPEATS):
                once()
        self.wrong.zero_()

    def run(self, seconds: float) -> tuple[int, list[int]]:
        """Launches, and those with wrong slots to draft in, and to copy to."""
        launches, begin, now = 0, torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        elapsed = 0.0
        while elapsed < seconds:
            for _ in range(20):
                self.graph.replay()
                launches += REPEATS
            now.record()
            now.synchronize()
            elapsed = begin.elapsed_time(now) / 1e3
        return launches, self.wrong.tolist()


def shared(processes: int, seconds: str, mended: bool) -> int:
    """Side by side; prints their sums and returns how many launches were wrong."""
    command = [sys.executable, __file__, seconds, "mended" if mended else "sglang"]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(processes)]
    sums = [0, 0, 0]
    for one in running:
        said, _ = one.communicate()
        if one.returncode:
            sys.exit(f"a process ended with exit code {one.returncode}")
        sums = [total + int(more) for total, more in zip(sums, said.split()[-3:], strict=True)]
    launches, drafts, copies = sums
    which = "with a barrier" if mended else "SGLang's"
    print(
        f"{which}, {processes} at once: {launches} launches, wrong slots to draft in: {drafts}, to copy to: {copies}",
        flush=True,
    )
    return drafts + copies


def main() -> int:
    """All four, or one process's part of one of them."""
    seconds, *which = sys.argv[1:] or ["10"]
    if which:
        launches, wrong = Stress(mended=which == ["mended"]).run(float(seconds))
        print(launches, *wrong)
        return 0
    for processes in (1, PROCESSES):
        shared(processes, seconds, mended=False)
    return int(any([shared(processes, seconds, mended=True) for processes in (1, PROCESSES)]))


if __name__ == "__main__":
    sys.exit(main())
