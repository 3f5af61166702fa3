"""Where a scheduler's output goes instead of to other processes."""

from typing import Any, Protocol


class Listener(Protocol):
    """Takes what the sink understands: a `Probe`, or `Ends`."""

    def token_output(self, output: Any) -> None:
        """A `BatchTokenIDOutput` (managers/io_struct.py)."""

    def abort_output(self, rid: str) -> None:
        """An `AbortReq` to the tokenizer."""

    def flush_output(self, granted: bool) -> None:
        """The answer to a flush."""


class Sink:
    """Stands in for both `SenderWrapper`s of a scheduler (managers/scheduler.py)."""

    def __init__(self, scheduler: Any) -> None:
        self.listener: Listener | None = None
        scheduler.send_to_tokenizer = scheduler.send_to_detokenizer = self

    def send_output(self, output: Any, recv_obj: Any = None) -> None:
        """Hand an output to who listens, if anyone does."""
        if self.listener is None:
            return
        match type(output).__name__:
            case "BatchTokenIDOutput":
                self.listener.token_output(output)
            case "AbortReq":
                self.listener.abort_output(output.rid)
            case "FlushCacheReqOutput":
                self.listener.flush_output(output.success)
