"""What of SGLang the emulated device doesn't run, because it has something of its own in its place."""

import ast
from collections.abc import Iterator

from harness.emulation.adaptations import GRAPH_RUNNERS
from harness.emulation.kernels import TRITON_REFERENCES, ReplacedFunction

METHODS = {
    **{module: [f"{name}._capture_graph"] for module, name in GRAPH_RUNNERS},
    "sglang.srt.model_executor.model_runner": ["ModelRunner.init_device_graphs"],
}
"""By module, those that `harness.emulation.adaptations` replaces."""


def not_run(module: str, before: str, after: str) -> list[str]:
    """Names in a module, of those that are replaced, whose source differs; the module itself where all of it is.

    A module around a replaced function holds kernels that nothing else launches: all of it counts.
    """
    if any(isinstance(one, ReplacedFunction) and one.module == module for one in TRITON_REFERENCES):
        return [module] if ast.dump(ast.parse(before)) != ast.dump(ast.parse(after)) else []
    names = {one.attribute for one in TRITON_REFERENCES if one.module == module} | {*METHODS.get(module, ())}
    old, new = (dict(_definitions(ast.parse(source))) for source in (before, after))
    return sorted(f"{module}.{name}" for name in names if old.get(name) != new.get(name))


def _definitions(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Functions and methods, dumped, by name."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, ast.dump(node)
        if isinstance(node, ast.ClassDef):
            yield from (
                (f"{node.name}.{one.name}", ast.dump(one)) for one in node.body if isinstance(one, ast.FunctionDef)
            )
