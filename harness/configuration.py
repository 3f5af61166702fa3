"""The frozen configuration that an engine boots from."""

from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, PositiveInt, model_validator

from harness.patches.stack import UNCHANGED, Patch, title, without_worker, worker, workers


class Value(BaseModel):
    """An immutable value whose `repr` is valid Python, without the fields that have their default."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def __repr_args__(self) -> list[tuple[str | None, Any]]:
        fields = type(self).model_fields
        return [
            (name, value)
            for name, value in super().__repr_args__()
            if name is None or value != fields[name].get_default(call_default_factory=True)
        ]

    def __str__(self) -> str:
        return repr(self)


class Worker(StrEnum):
    """Which of SGLang's workers decodes."""

    NONE = "none"
    """No speculation: `TpModelWorker`."""
    V1 = "v1"
    """`EAGLEWorker`: topk >= 1, no overlap scheduling."""
    V2 = "v2"
    """`EAGLEWorkerV2`: topk = 1, overlap scheduling."""

    def __repr__(self) -> str:
        return repr(self.value)


class ModelPair(Value):
    """A target and an EAGLE-3 draft by path, instead of the built-in pair.

    With `dummy_weights` the folders need no weights: SGLang makes them up, for measuring a shape.
    """

    target: Path
    draft: Path | None = None
    dummy_weights: bool = False

    @property
    def name(self) -> str:
        """What to call it: a shape is a folder of two, other targets have folders of their own."""
        return self.target.parent.name if self.dummy_weights else self.target.name

    def __repr_args__(self) -> list[tuple[str | None, Any]]:
        return [(name, str(value) if isinstance(value, Path) else value) for name, value in super().__repr_args__()]


Strategy = Literal["warm", "plain"]
"""What a toggle's plain steps leave to the draft: to follow each, or to catch up later."""


class Toggle(Value):
    """The fixed toggle (`harness.toggle`): when it decodes plainly, and how.

    Speculation is off above `threshold` requests in the decode batch, and on again at `threshold - hysteresis` or
    fewer. `kept_tokens` is of strategy plain: so many plain steps of a request are kept for the draft to catch up;
    None for the toggle's own default.
    """

    threshold: PositiveInt
    hysteresis: NonNegativeInt = 0
    strategy: Strategy = "warm"
    kept_tokens: PositiveInt | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.hysteresis >= self.threshold:
            raise ValueError(f"hysteresis {self.hysteresis} must be smaller than threshold {self.threshold}")
        if self.kept_tokens is not None and self.strategy != "plain":
            raise ValueError(f"kept_tokens is for strategy plain: {self.strategy} keeps nothing")
        return self


DEFAULT_SETTING = "env:SGLANG_SPECULATION_THRESHOLD"
"""How a patch of SGLang is told the threshold, unless said otherwise."""
CAPTURED_SIZES = (1, 2, 4, 8, 16)
"""Batch sizes, in requests, whose graphs are captured by default, as far as that many requests may run."""


class EngineConfig(Value):
    """All that decides how SGLang's scheduler starts, the device aside.

    `draft_tokens` (nodes of the verified tree, its root included) defaults to `steps + 1` at topk 1, else to
    `4 * topk` or what the tree holds; with worker none it, `steps` and `topk` don't matter. `graphs` names the batch
    sizes to capture, in requests; an empty tuple turns CUDA graphs off. `chunked_prefill_size` (tokens) None turns
    chunking off. `patch` is what is under test (`harness.patches.stack`); `warm` is the fixed toggle. Where SGLang
    itself is patched and no worker is named, `threshold_setting` is how it learns the threshold: `env:NAME` a variable,
    set while a scheduler starts, or `argument:NAME` a field of `ServerArgs`.
    """

    worker: Worker = Worker.V1
    topk: PositiveInt = Field(default=4, le=64)
    steps: PositiveInt = Field(default=3, le=15)
    draft_tokens: PositiveInt | None = Field(default=None, le=256)
    overlap: bool = False
    page_size: PositiveInt = 1
    attention_backend: Literal["triton", "flashinfer"] = "triton"
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    graphs: tuple[PositiveInt, ...] = CAPTURED_SIZES
    max_running_requests: PositiveInt = 16
    kv_tokens: PositiveInt = 4096
    context_length: PositiveInt = 512
    chunked_prefill_size: PositiveInt | None = None
    radix_cache: bool = True
    random_seed: int = 1234
    models: ModelPair | None = None
    toggle: Toggle | None = None
    patch: Patch = UNCHANGED
    threshold_setting: str = Field(default=DEFAULT_SETTING, pattern=r"^(env|argument):[A-Za-z_]\w*$")

    @model_validator(mode="before")
    @classmethod
    def _dependent_defaults(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        if data.get("worker") in ("v2", Worker.V2):
            data = {"topk": 1, "overlap": True, **data}
        most = data.get("max_running_requests")
        if isinstance(most, int):
            data = {"graphs": tuple(size for size in CAPTURED_SIZES if size <= most), **data}
        return data

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.toggle is not None and not self.speculative:
            raise ValueError("a toggle needs speculation to switch: use worker v1 or v2, or leave the toggle out")
        if len(workers(self.patch)) > 1:
            raise ValueError(f"patch {title(self.patch)} names more than one worker: leave one of them")
        if self.toggle is None and worker(self.patch) not in (None, UNCHANGED):
            raise ValueError(f"patch {title(self.patch)} replaces a toggle: give it a toggle with a threshold")
        if self.worker is Worker.V1 and self.overlap:
            raise ValueError("worker v1 has no overlap scheduling: set overlap=False, or use worker v2")
        if self.worker is Worker.V2 and not self.overlap:
            raise ValueError("worker v2 runs with overlap scheduling only: leave overlap at its default")
        if self.worker is Worker.V2 and self.topk != 1:
            raise ValueError(f"worker v2 supports topk 1 only, not {self.topk}: set topk=1, or use worker v1")
        if self.attention_backend == "flashinfer" and self.dtype == "float32":
            raise ValueError("attention_backend flashinfer has no float32: use bfloat16 or float16")
        if self.speculative and not 2 <= self.verified_tokens <= self._tree_size:
            raise ValueError(
                f"draft_tokens={self.verified_tokens} doesn't fit: topk {self.topk} with {self.steps} steps makes a "
                f"tree of 2 to {self._tree_size} tokens"
            )
        if self.speculative and self.topk == 1 and self.verified_tokens != self.steps + 1:
            raise ValueError(f"topk 1 drafts a chain: draft_tokens must be steps + 1 = {self.steps + 1}, or left out")
        if self.graphs and self.graphs[-1] > self.max_running_requests:
            raise ValueError(
                f"graphs to {self.graphs[-1]} with max_running_requests={self.max_running_requests}: SGLang would "
                "capture other sizes, so leave out the larger ones"
            )
        if self.graphs != tuple(sorted(set(self.graphs))):
            raise ValueError(f"graphs must be increasing batch sizes, not {self.graphs}")
        return self

    @property
    def speculative(self) -> bool:
        """Whether a draft model proposes tokens."""
        return self.worker is not Worker.NONE

    @property
    def untoggled(self) -> Self:
        """The same engine of the same SGLang, speculating always if at all."""
        return self.model_copy(update={"toggle": None, "patch": without_worker(self.patch)})

    @property
    def verified_tokens(self) -> int:
        """Tokens of one request in a verify forward: `draft_tokens`, or its default; 1 without speculation."""
        if not self.speculative:
            return 1
        if self.draft_tokens is not None:
            return self.draft_tokens
        return self.steps + 1 if self.topk == 1 else min(4 * self.topk, self._tree_size)

    @property
    def _tree_size(self) -> int:
        # A root, topk children, then per further step topk candidates for each of topk kept nodes.
        return 1 + self.topk + (self.steps - 1) * self.topk**2
