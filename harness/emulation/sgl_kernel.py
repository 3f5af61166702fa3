"""A stand-in for the package `sgl_kernel`, whose compiled kernels need a GPU.

Every name that SGLang imports from it resolves: to a reference from `harness.emulation.kernels` where there is one,
otherwise to a function that raises `UnreferencedKernel` when it is called. Importing must work for both, since SGLang
imports far more than a dense model launches.
"""

import importlib.machinery
import importlib.util
import sys
from importlib.abc import Loader, MetaPathFinder
from types import ModuleType
from typing import Any, NoReturn

from harness.emulation.errors import UnreferencedKernel
from harness.emulation.kernels import SGL_KERNEL_REFERENCES

PACKAGE = "sgl_kernel"
PURE_PYTHON = "scalar_type"
"""A module of the real package that needs no GPU and is used as it is."""


class StandInModule(ModuleType):
    """One module of the stand-in package; its attributes are made when asked for."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = SGL_KERNEL_REFERENCES.get(name) or _unreferenced(f"{self.__name__}.{name}")
        setattr(self, name, value)
        return value


def _unreferenced(kernel: str) -> Any:
    def launch(*_: Any, **__: Any) -> NoReturn:
        raise UnreferencedKernel(kernel)

    launch.__name__ = kernel.rpartition(".")[2]
    return launch


class StandInFinder(MetaPathFinder, Loader):
    """Finds `sgl_kernel` and whatever is imported below it."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """A spec for the stand-in, or none for any other package (importlib's finder protocol)."""
        if name != PACKAGE and not name.startswith(f"{PACKAGE}."):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """An empty stand-in module (importlib's loader protocol)."""
        module = StandInModule(spec.name)
        module.__path__ = []
        module.__version__ = "emulated"  # type: ignore[attr-defined]
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Nothing to run: attributes are made when asked for."""


def install() -> None:
    """Put the stand-in where `import sgl_kernel` finds it; the real package must not be imported yet."""
    if PACKAGE in sys.modules:
        raise RuntimeError("sgl_kernel is imported already: install the emulated device before importing SGLang")
    real = importlib.util.find_spec(PACKAGE)
    sys.meta_path.insert(0, StandInFinder())
    if real is not None and real.submodule_search_locations:
        _use_real(PURE_PYTHON, real.submodule_search_locations[0])


def _use_real(module_name: str, package_folder: str) -> None:
    name = f"{PACKAGE}.{module_name}"
    spec = importlib.util.spec_from_file_location(name, f"{package_folder}/{module_name}.py")
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    package = importlib.import_module(PACKAGE)
    setattr(package, module_name, module)
    for public in ("ScalarType", "scalar_types"):
        setattr(package, public, getattr(module, public))
