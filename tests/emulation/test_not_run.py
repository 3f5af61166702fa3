"""What of a changed SGLang the emulated device doesn't run."""

import pytest

from harness.emulation.kernels import TRITON_REFERENCES, ReplacedFunction
from harness.emulation.stand_ins import METHODS, not_run
from harness.patches.changed import sources_of
from harness.patches.diffs import installed_package

SPEC_UTILS = "sglang.srt.speculative.spec_utils"
RUNNER = "sglang.srt.model_executor.cuda_graph_runner"
EXTEND = "sglang.srt.layers.attention.triton_ops.extend_attention"


def source(module: str) -> str:
    return sources_of([f"{module.replace('.', '/')}.py"], installed_package().parent)[module]


@pytest.mark.parametrize(
    ("module", "old", "new", "names"),
    [
        (SPEC_UTILS, "def assign_draft_cache_locs(", "def assign_draft_cache_locs(more, ", ["assign_draft_cache_locs"]),
        (SPEC_UTILS, "def select_top_k_tokens(", "def select_top_k_tokens(more, ", []),
        (RUNNER, "def _capture_graph(self", "def _capture_graph(self, more", ["CudaGraphRunner._capture_graph"]),
        (RUNNER, "def can_run(self", "def can_run(self, more", []),
    ],
    ids=["a kernel", "a function", "a method", "another method"],
)
def test_what_differs(module: str, old: str, new: str, names: list[str]) -> None:
    before = source(module)
    assert old in before
    assert not_run(module, before, before.replace(old, new)) == [f"{module}.{name}" for name in names]
    assert not_run(module, before, f"# a comment\n{before}") == []


def test_a_module_around_a_replaced_function_counts_whole() -> None:
    before = source(EXTEND)
    assert not_run(EXTEND, before, before + "\nmore = 1\n") == [EXTEND]


def test_each_stand_in_has_a_definition() -> None:
    """Else a change of it would go unseen."""
    kernels = [one for one in TRITON_REFERENCES if not isinstance(one, ReplacedFunction)]
    assert {one.attribute for one in kernels if not_run(one.module, source(one.module), "")} == {
        one.attribute for one in kernels
    }
    for module, methods in METHODS.items():
        assert not_run(module, source(module), "") == [f"{module}.{name}" for name in methods]
