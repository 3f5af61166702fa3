"""V2's results on their way to the next step: those of a plain step stay where they are while the batch is the same.

`FutureMap` (managers/overlap_utils.py) copies each of the five tensors that a step leaves for the next into buffers,
and gathers them from there for the requests of the next batch. From one plain step to the next of the same requests
these are ten launches for rows that the result holds anyway.
"""

from typing import Any

from sglang.srt.managers.overlap_utils import FutureIndices, FutureMap

from harness.toggle.plain_input import PlainDraftInput


class ToggledFutureMap(FutureMap):  # type: ignore[misc]
    """Copies the result of a plain step only if the next batch isn't the same as that step's.

    Then it does so before the next step begins, as its parent does after each step: the next plain step overwrites what
    a graph returned, and future indices come round again.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._left: tuple[PlainDraftInput, FutureIndices] | None = None

    def store_to_map(self, future_indices: FutureIndices, batch_result: Any) -> None:
        """Keep the result of a step until `resolve_future` asks for it."""
        result = batch_result.next_draft_input
        if isinstance(result, PlainDraftInput):
            # Of its own: the scheduler filters the indices that it has in place.
            self._left = result, FutureIndices(future_indices.indices, future_indices.interval)
        else:
            super().store_to_map(future_indices, batch_result)

    def resolve_future(self, model_worker_batch: Any) -> None:
        """Fill in what the last steps of the batch's requests left, where it isn't there already."""
        if self._left is not None:
            (result, stored), self._left = self._left, None
            # A batch that was filtered or merged has indices of its own.
            if model_worker_batch.spec_info is result and result.future_indices.indices is stored.indices:
                return
            self.store_to_map_for_new_batch(stored, result)
        super().resolve_future(model_worker_batch)

    def forget(self) -> None:
        """Drop what no batch will ask for any more."""
        self._left = None


def adopt(scheduler: Any) -> None:
    """Give a scheduler with a toggled worker, just started, such a map in place of its own."""
    if hasattr(scheduler.draft_worker, "toggle") and scheduler.future_map is not None:
        scheduler.future_map = ToggledFutureMap(
            scheduler.max_running_requests,
            scheduler.chunked_prefill_size,
            scheduler.model_config.context_len,
            scheduler.device,
            scheduler.spec_algorithm,
        )
