"""Notes how requests end, for a loop that is otherwise unwatched."""

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from harness.engine.v0_5_12.requests import number_of

Ended = Callable[[int, list[int], int | None], None]
"""Told of a request that ended: its number, its tokens, and its decode steps where the engine speculates."""


class Ends:
    """Takes a scheduler's output: collects each request's tokens until it ends."""

    def __init__(self, ended: Ended) -> None:
        self._ended = ended
        self._tokens: defaultdict[str, list[int]] = defaultdict(list)

    def token_output(self, output: Any) -> None:
        """A `BatchTokenIDOutput` (managers/io_struct.py)."""
        tokens, steps = self._tokens, output.spec_verify_ct
        for row, (rid, ids, reason) in enumerate(
            zip(output.rids, output.output_ids, output.finished_reasons, strict=True)
        ):
            tokens[rid] += ids
            if reason is not None:
                self._ended(number_of(rid), tokens.pop(rid), steps[row] if steps else None)

    def abort_output(self, rid: str) -> None:
        """An `AbortReq`: the request ended without having run, or out of memory."""
        self._ended(number_of(rid), self._tokens.pop(rid, []), None)

    def flush_output(self, granted: bool) -> None:
        """The answer to a flush, which nobody here asks for."""
