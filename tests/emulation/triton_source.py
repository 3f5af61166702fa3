"""SGLang's Triton kernels without SGLang: importing it takes 13 s, its kernels need none of that."""

import ast
import importlib.util
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType

PRELUDE = """
from __future__ import annotations

import torch
import triton
import triton.language as tl

_is_hip = _is_cuda = False


"""

_DIRECTORY = TemporaryDirectory(prefix="triton_source_")
"""Triton reads a kernel's source from its file, so the extracts stay until the interpreter ends."""


@cache
def kernels_of(path: str, functions: bool = False) -> ModuleType:
    """The Triton kernels and constants of a file below `sglang/srt`, and the functions that launch them if wanted."""
    package = importlib.util.find_spec("sglang")
    assert package is not None
    assert package.submodule_search_locations
    source = (Path(package.submodule_search_locations[0]) / "srt" / path).read_text()
    lines = source.splitlines()
    kept = [node for node in ast.parse(source).body if _is_kept(node, functions)]
    extract = PRELUDE + "\n\n\n".join("\n".join(lines[_first_line(node) - 1 : node.end_lineno]) for node in kept)
    file = Path(_DIRECTORY.name) / path.replace("/", "_")
    file.write_text(extract)
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _is_kept(node: ast.stmt, functions: bool) -> bool:
    if isinstance(node, ast.Assign):
        return isinstance(node.value, ast.Constant)
    if not isinstance(node, ast.FunctionDef):
        return False
    decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
    return decorators == ["triton.jit"] or (functions and not decorators)


def _first_line(node: ast.stmt) -> int:
    decorators = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])
