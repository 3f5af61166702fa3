"""Where SGLang asks whether it is on a GPU, and the emulated device answers yes.

SGLang 0.5.12.post1 can run on a CPU, but not the code under test: it replaces the speculative tree kernels by
nothing, and never captures graphs. These patches, and no others, put the GPU's path back.
"""

import ctypes
import importlib
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Any

import torch

from harness.emulation.graphs import EmulatedGraph
from harness.emulation.kernels import SGL_KERNEL_REFERENCES, TRITON_REFERENCES
from harness.emulation.opaque import opaque

MALLOPT_TRIM_THRESHOLD, MALLOPT_MMAP_THRESHOLD = -1, -3  # malloc.h
SPECULATIVE = "sglang.srt.speculative"

TREE_KERNELS = ("top_k_renorm_prob", "top_p_renorm_prob", "tree_speculative_sampling_target_only")

GPU_PATHS: dict[str, dict[str, Any]] = {
    f"{SPECULATIVE}.eagle_utils": {
        "_is_cuda": True,
        "sgl_build_tree_kernel_efficient": SGL_KERNEL_REFERENCES["build_tree_kernel_efficient"],
    },
    f"{SPECULATIVE}.eagle_info": {
        "TREE_SPEC_KERNEL_AVAILABLE": True,
        **{kernel: SGL_KERNEL_REFERENCES[kernel] for kernel in TREE_KERNELS},
    },
    f"{SPECULATIVE}.eagle_info_v2": {
        "_is_cuda": True,
        **{kernel: SGL_KERNEL_REFERENCES[kernel] for kernel in TREE_KERNELS},
    },
    f"{SPECULATIVE}.eagle_worker_v2": {"_is_cuda": True},
    f"{SPECULATIVE}.spec_utils": {"TREE_SPEC_KERNEL_AVAILABLE": True},
}
"""What each module would hold had it found CUDA at import."""

GRAPH_RUNNERS = (
    ("sglang.srt.model_executor.cuda_graph_runner", "CudaGraphRunner"),
    (f"{SPECULATIVE}.eagle_draft_cuda_graph_runner", "EAGLEDraftCudaGraphRunner"),
    (f"{SPECULATIVE}.eagle_draft_extend_cuda_graph_runner", "EAGLEDraftExtendCudaGraphRunner"),
)

SPECULATIVE_WORKERS = (
    (f"{SPECULATIVE}.eagle_worker", "EAGLEWorker"),
    (f"{SPECULATIVE}.eagle_worker_v2", "EagleDraftWorker"),
)


def adapt_torch() -> None:
    """Give CPU tensors and `torch.cuda` what SGLang calls without asking; before SGLang is imported."""
    _keep_freed_memory()
    torch.set_num_threads(1)  # tensors are tiny here: handing them to a second thread costs more than it gives
    torch.cuda.synchronize = lambda *_: None
    torch.cuda.empty_cache = lambda: None
    torch.cuda.CUDAGraph = EmulatedGraph  # type: ignore[assignment,misc]
    torch.cpu.graph_pool_handle = lambda: (0, 0)  # type: ignore[attr-defined]
    torch.tensor = _unpinned(torch.tensor)
    torch.full = _at_home(torch.full)
    torch.Tensor.record_stream = lambda self, stream: None  # type: ignore[method-assign,assignment]


def _unpinned(factory: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Without pinned memory, which needs a driver (layers/logits_processor.py asks for it)."""

    @wraps(factory)
    def make(*args: Any, pin_memory: bool = False, **kwargs: Any) -> torch.Tensor:
        return factory(*args, **kwargs)

    return make


def _at_home(factory: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """On the CPU where a GPU is named (speculative/spec_utils.py does, to simulate acceptance)."""

    @wraps(factory)
    def make(*args: Any, device: Any = None, **kwargs: Any) -> torch.Tensor:
        return factory(*args, device=None if device == "cuda" else device, **kwargs)

    return make


def _keep_freed_memory() -> None:
    """Tell glibc to keep buffers of megabytes: giving them back after each call costs a page fault a page."""
    with suppress(OSError, AttributeError):  # another C library
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(MALLOPT_MMAP_THRESHOLD, 1 << 30)
        mallopt(MALLOPT_TRIM_THRESHOLD, (1 << 31) - 1)


def adapt_triton() -> None:
    """Record a kernel under Triton's interpreter as one node of a captured graph."""
    interpreted = importlib.import_module("triton.runtime.interpreter").InterpretedFunction
    interpreted.run = opaque(interpreted.run)


def adapt_sglang() -> None:
    """Put the GPU's path back; imports SGLang's scheduler, which takes most of a start."""
    with warnings.catch_warnings(action="ignore"):  # of hardware that isn't there
        importlib.import_module("sglang.srt.managers.scheduler")
    for module, answers in GPU_PATHS.items():
        for name, value in answers.items():
            setattr(importlib.import_module(module), name, value)
    for reference in TRITON_REFERENCES:
        reference.install()
    _capture_graphs()
    _stand_in_for_flashinfer()


def _stand_in_for_flashinfer() -> None:
    """Give SGLang Triton's attention where it asks for flashinfer's, which has no CPU kernels.

    Both attend to the slots that SGLang's own kernels have listed for them. For pages of several tokens together with
    topk > 1 SGLang takes flashinfer or fa3 (`ServerArgs`, server_args.py).
    """
    backends = importlib.import_module("sglang.srt.layers.attention.attention_registry").ATTENTION_BACKENDS
    backends["flashinfer"] = backends["triton"]
    drafts = importlib.import_module(f"{SPECULATIVE}.draft_utils").DraftBackendFactory
    drafts._create_flashinfer_decode_backend = _with_flashinfers_room(drafts._create_triton_decode_backend)
    drafts._create_flashinfer_prefill_backend = drafts._create_triton_prefill_backend


def _with_flashinfers_room(create: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Captured lists of KV indices with room for one branch of each request, where Triton's have it for all.

    `FlashInferMultiStepDraftBackend.init_cuda_graph_state` (layers/attention/flashinfer_backend.py).
    """

    @wraps(create)
    def create_draft_backend(factory: Any) -> Any:
        backend = create(factory)
        init_for_triton = backend.init_cuda_graph_state

        def init_cuda_graph_state(max_bs: int, max_num_tokens: int) -> None:
            init_for_triton(max_bs, max_num_tokens)
            lists = backend.cuda_graph_kv_indices[:, : max_bs * backend.max_context_len].contiguous()
            backend.cuda_graph_kv_indices = lists
            for step, its_list in zip(backend.attn_backends, lists, strict=False):  # the last is of no step
                step.cuda_graph_kv_indices = its_list

        backend.init_cuda_graph_state = init_cuda_graph_state
        return backend

    return create_draft_backend


def _capture_graphs() -> None:
    for module, name in GRAPH_RUNNERS:
        getattr(importlib.import_module(module), name)._capture_graph = _capture_graph
    for module, name in SPECULATIVE_WORKERS:
        worker = getattr(importlib.import_module(module), name)
        worker.init_cuda_graphs = _with_cuda_graph_runners(worker.init_cuda_graphs)
    runner = importlib.import_module("sglang.srt.model_executor.model_runner").ModelRunner
    runner.init_device_graphs = _init_device_graphs
    modes = importlib.import_module("sglang.srt.model_executor.forward_batch_info").ForwardMode
    modes.is_cpu_graph = modes.is_cuda_graph


def _capture_graph(self: Any, graph: EmulatedGraph, pool: Any, stream: Any, run_once_fn: Callable[[], Any]) -> Any:
    return graph.capture(run_once_fn)


def _init_device_graphs(self: Any) -> None:
    """`ModelRunner.init_device_graphs` with the CUDA graph runner, which a CPU would replace by torch.compile."""
    self.graph_runner, self.graph_mem_usage = None, 0
    if not self.server_args.disable_cuda_graph:
        runners = importlib.import_module("sglang.srt.model_executor.cuda_graph_runner")
        self.graph_runner = runners.CudaGraphRunner(self)


def _with_cuda_graph_runners(init_cuda_graphs: Callable[[Any], None]) -> Callable[[Any], None]:
    """The worker picks its graph runners from a table by device name, which has no entry for a CPU."""

    def init(self: Any) -> None:
        target, device = self.target_worker, self.target_worker.device
        target.device = "cuda"
        try:
            init_cuda_graphs(self)
        finally:
            target.device = device

    return init
