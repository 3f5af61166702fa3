"""Where a scheduler's output goes instead of to other processes."""

from typing import Any

from harness.engine.v0_5_12.probe import Probe


class Sink:
    """Stands in for both `SenderWrapper`s of a scheduler (managers/scheduler.py)."""

    def __init__(self, scheduler: Any) -> None:
        self.probe: Probe | None = None
        scheduler.send_to_tokenizer = scheduler.send_to_detokenizer = self

    def send_output(self, output: Any, recv_obj: Any = None) -> None:
        """Hand an output to the probe, if one watches."""
        if self.probe is None:
            return
        match type(output).__name__:
            case "BatchTokenIDOutput":
                self.probe.token_output(output)
            case "AbortReq":
                self.probe.abort_output(output.rid)
            case "FlushCacheReqOutput":
                self.probe.flush_output(output.success)
