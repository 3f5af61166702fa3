"""The stand-in for `sgl_kernel`: everything imports, what has a reference runs, anything else raises by name."""

import os
import subprocess
import sys
import textwrap

from harness.emulation import environment

PREAMBLE = """
from harness.emulation import environment, sgl_kernel
environment.prepare()
sgl_kernel.install()
"""


def run(script: str) -> "subprocess.CompletedProcess[str]":
    """Run in a process of its own: an installed stand-in can't be taken out again."""
    untouched = {name: value for name, value in os.environ.items() if name not in environment.ENVIRONMENT}
    command = [sys.executable, "-c", textwrap.dedent(script)]
    return subprocess.run(command, env=untouched, capture_output=True, text=True, check=False, timeout=120)


def test_an_unreferenced_kernel_raises_its_name() -> None:
    ended = run(
        PREAMBLE
        + """
from sgl_kernel import verify_tree_greedy, scalar_types
from sgl_kernel.speculative import build_tree_kernel_efficient
from sgl_kernel.flash_attn import flash_attn_with_kvcache
assert verify_tree_greedy.__module__ == "harness.emulation.kernels.tree"
assert scalar_types.uint4.size_bits == 4
flash_attn_with_kvcache(1, 2)
"""
    )
    assert "UnreferencedKernel: the emulated device has no reference for the kernel" in ended.stderr
    assert "sgl_kernel.flash_attn.flash_attn_with_kvcache" in ended.stderr


def test_installing_too_late_is_refused() -> None:
    ended = run("import triton\nfrom harness.emulation import environment\nenvironment.prepare()")
    assert "triton imported before the emulated device was installed" in ended.stderr
