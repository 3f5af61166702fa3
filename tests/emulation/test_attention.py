"""The attention references against SGLang's kernels, under Triton's interpreter."""

import inspect
from dataclasses import replace
from typing import Any

import numpy
import pytest
import torch

from harness.emulation.kernels.attention import decode_attention_fwd, extend_attention_fwd
from tests.emulation.attention_batches import (
    UNTOUCHED,
    Batch,
    Options,
    decode_batch,
    extend_batch,
    on,
    random_options,
)
from tests.emulation.triton_source import kernels_of

DECODE = "layers/attention/triton_ops/decode_attention.py"
EXTEND = "layers/attention/triton_ops/extend_attention.py"
TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 2e-2}

pytestmark = [
    pytest.mark.filterwarnings("ignore:Conversion of an array:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning"),  # rows of padding
    pytest.mark.filterwarnings("ignore:tl.where with a non-boolean condition:UserWarning"),
]


def real(name: str) -> Any:
    return getattr(kernels_of(DECODE if name.startswith("decode") else EXTEND, functions=True), name)


def in_float32(batch: Batch) -> Batch:
    """A copy in float32, since the interpreter multiplies the bits of bfloat16 matrices as integers."""
    copy = on(batch, "cpu")
    return {
        name: value.float() if isinstance(value, torch.Tensor) and value.is_floating_point() else value
        for name, value in copy.items()
    }


def same_output(name: str, reference: Any, batch: Batch, output: str) -> None:
    expected, actual = in_float32(batch), on(batch, "cpu")
    real(name)(**expected)
    reference(**actual)
    tolerance = TOLERANCE[batch[output].dtype]
    torch.testing.assert_close(actual[output].float(), expected[output], atol=tolerance, rtol=tolerance, equal_nan=True)


CASES = [*((seed, torch.float32) for seed in range(6)), *((seed, torch.bfloat16) for seed in range(8, 10))]


@pytest.mark.parametrize(("seed", "dtype"), CASES)
def test_decode(seed: int, dtype: torch.dtype) -> None:
    rng = numpy.random.default_rng(seed)
    batch = decode_batch(rng, random_options(rng, dtype), longest=70, largest=3)
    same_output("decode_attention_fwd", decode_attention_fwd, batch, "o")


@pytest.mark.parametrize(("seed", "dtype"), CASES)
def test_extend(seed: int, dtype: torch.dtype) -> None:
    rng = numpy.random.default_rng(seed)
    batch = extend_batch(rng, random_options(rng, dtype), longest=70, largest=3)
    same_output("extend_attention_fwd", extend_attention_fwd, batch, "o_extend")


def plain(**changes: Any) -> Options:
    """Four heads, causal, no caps, no masks but those asked for."""
    options = Options(
        dtype=torch.float32,
        heads=4,
        kv_heads=4,
        dim=32,
        logit_cap=0.0,
        masked=False,
        skip_prefix_mask=False,
        causal=True,
        window=-1,
        mask_dtype=torch.bool,
        bounds_dtype=torch.int64,
    )
    return replace(options, **changes)


def a_decode_batch(seed: int = 0, **sizes: int) -> Batch:
    return decode_batch(numpy.random.default_rng(seed), plain(), **sizes)


def an_extend_batch(seed: int = 0, **changes: Any) -> Batch:
    return extend_batch(numpy.random.default_rng(seed), plain(**changes))


def test_decode_row_without_slots() -> None:
    batch = a_decode_batch(longest=5, largest=3)
    batch["kv_indptr"][1:] -= batch["kv_indptr"][1].item()
    same_output("decode_attention_fwd", decode_attention_fwd, batch, "o")
    decode_attention_fwd(**batch)
    assert batch["o"][0].isnan().all()
    assert not batch["o"][1:].isnan().any()


def test_extend_row_that_sees_nothing() -> None:
    batch = an_extend_batch(masked=True)
    tokens = int(batch["qo_indptr"][-1])
    batch["custom_mask"].zero_()
    extend_attention_fwd(**batch)
    assert batch["o_extend"][:tokens].isnan().all()
    assert (batch["o_extend"][tokens:] == UNTOUCHED).all()


def test_decode_reads_slices_past_their_end() -> None:
    """As captured metadata is: sliced for the capture's fill values, on a buffer that holds more at replay."""
    whole, sliced = a_decode_batch(), a_decode_batch()
    sliced["kv_indices"] = sliced["kv_indices"][:1]
    decode_attention_fwd(**whole)
    decode_attention_fwd(**sliced)
    assert torch.equal(whole["o"], sliced["o"])


def test_extend_reads_slices_past_their_end() -> None:
    whole, sliced = an_extend_batch(masked=True), an_extend_batch(masked=True)
    for name in ("kv_indices", "custom_mask"):
        sliced[name] = sliced[name][:1]
    extend_attention_fwd(**whole)
    extend_attention_fwd(**sliced)
    assert torch.equal(whole["o_extend"], sliced["o_extend"])


def test_reading_past_the_storage_raises() -> None:
    batch = a_decode_batch()
    batch["kv_indptr"][-1] += 10
    with pytest.raises(IndexError, match="kv_indices"):
        decode_attention_fwd(**batch)


@pytest.mark.parametrize("option", [{"sinks": torch.zeros(4)}, {"xai_temperature_len": 4}, {"has_mla": True}])
def test_unsupported_options_are_named(option: dict[str, Any]) -> None:
    with pytest.raises(NotImplementedError, match=next(iter(option))):
        decode_attention_fwd(**a_decode_batch(), **option)


def test_no_rows() -> None:
    batch = a_decode_batch()
    decode_attention_fwd(**(batch | {"q": batch["q"][:0], "o": batch["o"][:0]}))


@pytest.mark.parametrize("reference", [decode_attention_fwd, extend_attention_fwd])
def test_same_parameters(reference: Any) -> None:
    own, theirs = (inspect.signature(f).parameters for f in (reference, real(reference.__name__)))
    assert [(p.name, p.default) for p in own.values()] == [(p.name, p.default) for p in theirs.values()]
