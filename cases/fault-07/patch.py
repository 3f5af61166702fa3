"""Fault 7: while speculation is off, `server_args` say one draft token and no steps.

The scheduler sizes V2's allocation by them, before the worker has decided: a batch that was prepared for a plain step
and runs a spec step writes slots that nobody allocated for it.
"""

from typing import Any

from sglang.srt.managers.scheduler import GenerationBatchResult

WORKER = "v2"


def worker(toggled: type) -> type:
    """The toggled class, telling the scheduler about each switch."""

    class Fault(toggled):
        def forward_batch_generation(self, model_worker_batch: Any) -> GenerationBatchResult:
            self._tell(self.speculative_num_draft_tokens, self.speculative_num_steps)
            return super().forward_batch_generation(model_worker_batch)

        def _plain_step(self, batch: Any) -> GenerationBatchResult:
            self._tell(draft_tokens=1, steps=0)
            return super()._plain_step(batch)

        def _tell(self, draft_tokens: int, steps: int) -> None:
            self.server_args.speculative_num_draft_tokens = draft_tokens
            self.server_args.speculative_num_steps = steps

    return Fault
