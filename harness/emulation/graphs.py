"""CUDA graphs on a CPU: record at capture, replay the same operations on the same tensors.

What a CUDA graph fixes at capture is fixed here too: Python doesn't run again at replay, so shapes, padding and
addresses are those of the capture. Whoever forgets to copy an input into the captured buffer, replays a graph of
another size, or rebinds a buffer that a graph points to, gets the wrong answer that a GPU would give. A host sync
during capture raises, as `cudaErrorStreamCaptureUnsupported` does.

Not modelled: the memory pool that graphs share on a GPU (outputs of one graph overwritten by another), and races
between streams.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from harness.emulation.opaque import Node, Recording

R = TypeVar("R")

HOST_SYNCS = frozenset(
    f"aten::{name}"
    for name in (
        "_local_scalar_dense",
        "item",
        "nonzero",
        "masked_select",
        "_unique2",
        "unique_dim",
        "unique_consecutive",
        "bincount",
        "equal",
    )
)
"""Operations whose result, or its shape, must reach the host before the next launch.

A copy to a CPU tensor by `Tensor.to` syncs too, but here every device is the CPU, so it can't be told from none.
"""

HOST_READS = ("tolist", "numpy", "cpu")
"""Methods of a tensor that read it on the host; on a CPU tensor they bypass the dispatcher."""


class CaptureError(RuntimeError):
    """An operation that CUDA refuses while a stream is captured (cudaErrorStreamCaptureUnsupported)."""

    def __init__(self, operation: str) -> None:
        super().__init__(
            f"CUDA error: operation not permitted when stream is capturing: {operation} reads a tensor on the host "
            "(emulated device)"
        )


class _Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records every aten operation."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        nodes = Recording.nodes
        if nodes is not None and _syncs(func, args, kwargs):
            raise CaptureError(func._schema.name)
        output = func(*args, **kwargs)
        if nodes is not None:
            nodes.append(Node.of(func, args, kwargs, output))
        return output


def _syncs(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    operation = func._schema.name
    if operation in HOST_SYNCS:
        return True
    if operation == "aten::repeat_interleave":  # how long the result is, only the counts' sum tells
        return isinstance(args[-1], torch.Tensor) and kwargs.get("output_size") is None
    # A boolean mask as index becomes positions on the host, but for filling with one value (masked_fill).
    masked = operation in ("aten::index", "aten::index_put_", "aten::index_put") and any(
        isinstance(index, torch.Tensor) and index.dtype in (torch.bool, torch.uint8) for index in args[1]
    )
    return masked and (operation == "aten::index" or args[2].numel() != 1)


@contextmanager
def _host_reads_raise() -> Iterator[None]:
    originals = {name: getattr(torch.Tensor, name) for name in HOST_READS}

    def guarded(name: str) -> Callable[..., Any]:
        def read(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            if Recording.active():
                raise CaptureError(f"torch.Tensor.{name}")
            return originals[name](tensor, *args, **kwargs)

        return read

    for name in HOST_READS:
        setattr(torch.Tensor, name, guarded(name))
    try:
        yield
    finally:
        for name, original in originals.items():
            setattr(torch.Tensor, name, original)


class EmulatedGraph:
    """Stands in for `torch.cuda.CUDAGraph`."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.replay_plan: list[tuple[Node, list[tuple[int, torch.Tensor]]]] | None = None

    def capture(self, run_once: Callable[[], R]) -> R:
        """Run `run_once` and record what it launches."""
        if Recording.active():
            raise CaptureError("a second capture")
        nodes: list[Node] = []
        Recording.nodes = nodes
        try:
            with _host_reads_raise(), _Recorder():  # type: ignore[no-untyped-call]
                output = run_once()
        finally:
            Recording.nodes = None
        self.replay_plan = [
            (node, results)
            for node in nodes
            if not _reshapes(node) and ((results := _results(node)) or _has_effect(node))
        ]
        return output

    def replay(self) -> None:
        """Launch the captured operations again, on the captured tensors."""
        if self.replay_plan is None:
            raise RuntimeError("replay of a CUDA graph that was never captured")
        with torch.no_grad():
            for node, results in self.replay_plan:
                output = node.call(*node.args, **node.kwargs)
                if results:
                    _write_back(output, results)

    def pool(self) -> tuple[int, int]:
        """The handle of the graph's memory pool; the emulation has none to share."""
        return (0, 0)

    def reset(self) -> None:
        """Forget the captured graph."""
        self.replay_plan = None


def _results(node: Node) -> list[tuple[int, torch.Tensor]]:
    """The captured tensors that a replay must fill: outputs that the node allocated rather than was given."""
    given = {_address(leaf) for leaf in tree_leaves((node.args, node.kwargs)) if isinstance(leaf, torch.Tensor)}
    leaves = tree_leaves(node.output)
    return [
        (i, leaf) for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor) and _address(leaf) not in given
    ]


def _reshapes(node: Node) -> bool:
    """Whether the node changes only a tensor's shape, in place (`unsqueeze_`): done once, at capture, on the host."""
    return torch.Tag.inplace_view in getattr(node.call, "tags", ())


def _has_effect(node: Node) -> bool:
    """Whether the node writes into tensors that it was given; one that doesn't is a view, with no work at replay."""
    schema = getattr(node.call, "_schema", None)
    return schema is None or any(a.alias_info is not None and a.alias_info.is_write for a in schema.arguments)


def _address(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _write_back(output: Any, results: list[tuple[int, torch.Tensor]]) -> None:
    if isinstance(output, torch.Tensor):
        results[0][1].copy_(output)
        return
    leaves = tree_leaves(output)
    for index, captured in results:
        captured.copy_(leaves[index])
