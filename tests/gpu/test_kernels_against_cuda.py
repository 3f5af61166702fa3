"""The kernel references against the real kernels, on a GPU: `sgl_kernel`, FlashInfer, and SGLang's Triton kernels.

Inputs are made on the CPU and copied: the reference runs on one copy, the kernel on another, and everything that
either may have written is compared. `harness.emulation` must not be installed in this process.
"""

import importlib
import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy
import pytest
import torch

from harness.emulation.kernels import attention, sampling, tree
from harness.emulation.kernels.replacement import TritonReference
from tests.emulation.attention_batches import HEADS, Batch, Options, decode_batch, extend_batch, on, random_options
from tests.emulation.drafts import (
    Draft,
    empty_outputs,
    mask_size,
    random_draft,
    random_verification,
    verification_outputs,
)
from tests.emulation.launch_cases import CASES, Case
from tests.emulation.launches import Launch

TREES = 1000
BATCHES = 1000
LAUNCHES = 1000
MOST_DRAWS = 100_000
"""Random launches drawn to find LAUNCHES that fit the compiled variants."""

SPECIALISATIONS = 4
"""Compiled variants of each helper kernel; compiling is what takes time."""

ATTENTION_OPTIONS = 6
ATTENTION_BATCHES = 170
TOLERANCE = {torch.float32: 1e-2, torch.bfloat16: 3e-2}
"""Triton multiplies float32 matrices as TF32: 10 bits of mantissa."""

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
    pytest.mark.skipif(
        os.environ.get("TRITON_INTERPRET") == "1",
        reason="TRITON_INTERPRET=1, as tests/emulation sets it: run tests/gpu in a process of its own",
    ),
]


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> None:
    """The references work on small tensors, and several workers share the processor."""
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def sgl_kernel() -> Any:
    """The real package, not the emulation's stand-in."""
    module = importlib.import_module("sgl_kernel")
    if not hasattr(torch.ops.sgl_kernel, "build_tree_kernel_efficient"):
        pytest.skip("sgl_kernel is a stand-in: harness.emulation is installed in this process")
    return module


def to_gpu(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    return [tensor.to("cuda", copy=True) for tensor in tensors]


def assert_same(expected: list[torch.Tensor], actual: list[torch.Tensor], note: object) -> None:
    for place, (one, other) in enumerate(zip(expected, actual, strict=True)):
        assert torch.equal(one, other.cpu()), f"output {place} of {note}"


def built_links(draft: Draft) -> list[torch.Tensor]:
    """retrive_index, retrive_next_token and retrive_next_sibling, by the reference."""
    outputs = empty_outputs(draft, *mask_size(draft, tree.QLEN_ONLY))
    sizes = (draft.topk, draft.depth, draft.nodes, tree.QLEN_ONLY)
    tree.build_tree_kernel_efficient(*draft.arguments(), *outputs, *sizes)
    return outputs[2:]


@pytest.mark.parametrize("mode", [tree.FULL_MASK, tree.QLEN_ONLY, tree.QLEN_ONLY_BITPACKING])
def test_build_tree(sgl_kernel: Any, mode: int) -> None:
    rng = numpy.random.default_rng(mode)
    for number in range(TREES):
        draft = random_draft(rng)
        if mode == tree.QLEN_ONLY_BITPACKING and draft.nodes > 32:
            continue
        outputs = empty_outputs(draft, *mask_size(draft, mode))
        actual = to_gpu(outputs)
        sizes = (draft.topk, draft.depth, draft.nodes, mode)
        sgl_kernel.build_tree_kernel_efficient(*to_gpu(list(draft.arguments())), *actual, *sizes)
        tree.build_tree_kernel_efficient(*draft.arguments(), *outputs, *sizes)
        assert_same(outputs, actual, (number, sizes))


def test_build_tree_of_one_node(sgl_kernel: Any) -> None:
    """What a plain step of a warm toggle verifies: no candidates at all."""
    draft = Draft(
        topk=1,
        depth=1,
        nodes=1,
        parent_list=torch.empty(3, 0),
        selected_index=torch.empty(3, 0, dtype=torch.int64),
        seq_lens=torch.tensor([4, 1, 9]),
        ancestry=numpy.empty((3, 0)),
    )
    outputs = empty_outputs(draft, *mask_size(draft, tree.FULL_MASK))
    actual = to_gpu(outputs)
    sgl_kernel.build_tree_kernel_efficient(*to_gpu(list(draft.arguments())), *actual, 1, 1, 1, tree.FULL_MASK)
    tree.build_tree_kernel_efficient(*draft.arguments(), *outputs, 1, 1, 1, tree.FULL_MASK)
    assert_same(outputs, actual, "one node")


def test_verify_greedy(sgl_kernel: Any) -> None:
    rng = numpy.random.default_rng(3)
    for number in range(TREES):
        draft = random_draft(rng)
        batch, nodes = len(draft.seq_lens), draft.nodes
        candidates, target = random_verification(rng, batch, nodes, vocabulary=int(rng.integers(2, 9)))
        inputs = [candidates, *built_links(draft), target]
        outputs = verification_outputs(batch, nodes, int(rng.integers(0, draft.depth + 1)))
        actual = to_gpu(outputs)
        sgl_kernel.verify_tree_greedy(*actual, *to_gpu(inputs))
        tree.verify_tree_greedy(*outputs, *inputs)
        assert_same(outputs, actual, number)


def random_sampling(rng: numpy.random.Generator) -> tuple[list[torch.Tensor], list[torch.Tensor], dict[str, Any]]:
    """Outputs (draft_probs last), inputs, and thresholds whose division is exact, of the sampling kernel."""
    draft = random_draft(rng, batch=int(rng.integers(1, 9)))
    batch, nodes = len(draft.seq_lens), draft.nodes
    vocabulary = int(rng.choice([16, 100, 256, 1003]))
    candidates, _ = random_verification(rng, batch, nodes, min(vocabulary, 20))
    logits = rng.standard_normal((batch, nodes, vocabulary), dtype=numpy.float32) * 3
    logits[:, :, :20] += 3
    coins, final_coins = (rng.random(shape, dtype=numpy.float32) for shape in ((batch, nodes), (batch,)))
    inputs = [candidates, *built_links(draft), torch.from_numpy(coins), torch.from_numpy(final_coins)]
    inputs.append(torch.from_numpy(logits).softmax(-1))
    draft_probs = torch.zeros(batch, nodes, vocabulary)
    thresholds = {
        "threshold_single": float(rng.choice([1.0, 0.25])),
        "threshold_acc": float(rng.choice([1.0, 0.5, 0.25])),
        "deterministic": bool(rng.random() < 0.8),
    }
    return [*verification_outputs(batch, nodes, draft.depth), draft_probs], inputs, thresholds


def test_tree_sampling(sgl_kernel: Any) -> None:
    """Paths and noted rejections are exact; a final draw may differ where its coin is within rounding of a boundary."""
    rng = numpy.random.default_rng(4)
    draws = other_draws = 0
    for number in range(BATCHES):
        outputs, inputs, thresholds = random_sampling(rng)
        actual = to_gpu(outputs)
        sgl_kernel.tree_speculative_sampling_target_only(*actual[:3], *to_gpu(inputs), actual[3], **thresholds)
        sampling.tree_speculative_sampling_target_only(*outputs[:3], *inputs, outputs[3], **thresholds)
        assert_same(outputs[1:], actual[1:], (number, thresholds))
        _, accept_index, accept_token_num, _ = outputs
        last = accept_index.gather(1, accept_token_num[:, None].long())[:, 0].long()
        expected, drawn = outputs[0], actual[0].cpu()
        draws += len(last)
        other_draws += int((expected[last] != drawn[last]).sum())
        expected[last] = drawn[last] = 0
        assert torch.equal(expected, drawn), (number, thresholds)
    assert other_draws <= draws / 500


def renormalised(kernel: Callable[..., torch.Tensor], probs: torch.Tensor, limit: torch.Tensor) -> torch.Tensor:
    try:
        return kernel(probs.cuda(), limit.cuda()).cpu()
    except (RuntimeError, FileNotFoundError, ImportError) as error:
        if "nvcc" in str(error) or "ninja" in str(error).lower():
            pytest.skip(f"FlashInfer can't compile its sampling kernels here: {error}")
        raise


@pytest.mark.parametrize("name", ["top_k_renorm_prob", "top_p_renorm_prob"])
@pytest.mark.parametrize("vocabulary", [256, 1003, 4096])
def test_renormalisation(sgl_kernel: Any, name: str, vocabulary: int) -> None:
    """A row may keep one token more or fewer where a sum is within rounding of the limit."""
    generator = torch.Generator().manual_seed(vocabulary)
    probs = (torch.randn(BATCHES, vocabulary, generator=generator) * 2).softmax(-1)
    if name.startswith("top_k"):
        limit = torch.randint(1, 2 * vocabulary, (BATCHES,), generator=generator, dtype=torch.int32)
        limit[: BATCHES // 4] = 1 << 30
    else:
        limit = torch.rand(BATCHES, generator=generator).clamp_min(0.01)
        limit[: BATCHES // 4] = 1.0
    difference = (renormalised(getattr(sgl_kernel, name), probs, limit) - getattr(sampling, name)(probs, limit)).abs()
    assert (difference.amax(-1) > 1e-5).float().mean() <= 0.02
    assert difference.max() < 0.05


def specialisation(kernel: Any, launch: Launch) -> tuple[object, ...]:
    """What Triton compiles this launch for, as far as the test varies it."""
    return tuple(
        value.dtype if isinstance(value, torch.Tensor) else value if parameter.is_constexpr else value is None
        for parameter, value in zip(kernel.params, launch.arguments.values(), strict=True)
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[1].__name__)
def test_helper_kernel(case: Case) -> None:
    path, reference, random_launch = case
    module = importlib.import_module("sglang.srt." + path.removesuffix(".py").replace("/", "."))
    kernel = getattr(module, reference.__name__)
    rng = numpy.random.default_rng(5)
    compiled: set[tuple[object, ...]] = set()
    compared = 0
    for number in range(MOST_DRAWS):
        if compared == LAUNCHES:
            break
        launch = random_launch(rng)
        key = specialisation(kernel, launch)
        if key not in compiled and len(compiled) == SPECIALISATIONS:
            continue
        compiled.add(key)
        compared += 1
        real, emulated = launch.on("cuda"), launch.on("cpu")
        kernel[real.grid](*real.arguments.values(), **real.options)
        TritonReference(kernel, reference)[emulated.grid](*emulated.arguments.values(), **emulated.options)
        expected = emulated.tensors()
        for name, tensor in real.tensors().items():
            assert torch.equal(tensor, expected[name]), f"{name} of launch {number}"
    assert compared == LAUNCHES


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("seed", range(ATTENTION_OPTIONS))
def test_decode_attention(seed: int, dtype: torch.dtype) -> None:
    module = importlib.import_module("sglang.srt.layers.attention.triton_ops.decode_attention")
    rng = numpy.random.default_rng(seed)
    options = options_of(rng, dtype, HEADS[seed % len(HEADS)])
    for _ in range(ATTENTION_BATCHES):
        batch = decode_batch(rng, options, longest=400, largest=40)
        compare_attention(module.decode_attention_fwd, attention.decode_attention_fwd, batch, "o")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("seed", range(ATTENTION_OPTIONS))
def test_extend_attention(seed: int, dtype: torch.dtype) -> None:
    module = importlib.import_module("sglang.srt.layers.attention.triton_ops.extend_attention")
    rng = numpy.random.default_rng(100 + seed)
    options = options_of(rng, dtype, HEADS[seed % len(HEADS)])
    # the causal kernel ends each block of queries at its diagonal, masked or not: longer masked inputs would need trees
    longest_new = 64 if options.masked else 300
    for _ in range(ATTENTION_BATCHES):
        batch = extend_batch(rng, options, longest=400, longest_new=longest_new)
        compare_attention(module.extend_attention_fwd, attention.extend_attention_fwd, batch, "o_extend")


def options_of(rng: numpy.random.Generator, dtype: torch.dtype, heads: tuple[int, int]) -> Options:
    """Random, but every grouping of heads in turn: the decode kernel has one variant with and one without groups."""
    return replace(random_options(rng, dtype), heads=heads[0], kv_heads=heads[1])


def compare_attention(kernel: Callable[..., None], reference: Callable[..., None], batch: Batch, output: str) -> None:
    real = on(batch, "cuda")
    kernel(**real)
    reference(**batch)
    tolerance = TOLERANCE[batch[output].dtype]
    torch.testing.assert_close(real[output].cpu(), batch[output], atol=tolerance, rtol=tolerance, equal_nan=True)
