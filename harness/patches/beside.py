"""Patches as files beside a program: what makes a folder all that a person needs."""

from pathlib import Path

from harness.patches import workers
from harness.patches.stack import Patch, entries, file_named, is_diff, is_plugin, parted
from harness.patches.workers import PATCH_FILE
from harness.program import Program

DIFF_FILE, PLUGIN_FILE = "patch.diff", "plugin.py"


def patch_beside(program: Program, folder: Path) -> Program:
    """A program whose patch names files without a folder means those beside it, in the folder it was read from."""
    return _with(program, tuple(_resolved(entry, folder) for entry in entries(program.config.patch)))


def local(program: Program) -> Program:
    """The program with its patch's files by the names that `files` gives them."""
    names = {file: name for name, file in files(program.config.patch).items()}
    return _with(program, tuple(_renamed(entry, names) for entry in entries(program.config.patch)))


def files(patch: Patch) -> dict[str, Path]:
    """The files that a patch is made of, by the names that they get beside a program."""
    found: dict[str, Path] = {}
    for entry in entries(patch):
        file = _file_of(entry)
        if file is not None and file not in found.values():
            found[_name(entry, found)] = file
    return found


def _name(entry: str, taken: dict[str, Path]) -> str:
    name = Path(DIFF_FILE if is_diff(entry) else PLUGIN_FILE if is_plugin(entry) else PATCH_FILE)
    number = sum(other.startswith(name.stem) and other.endswith(name.suffix) for other in taken)
    return f"{name.stem}-{number + 1}{name.suffix}" if number else str(name)


def _file_of(entry: str) -> Path | None:
    """The file of an entry, of a built-in patch too; None of the fixed toggle and of a module."""
    if is_plugin(entry) or is_diff(entry):
        return file_named(entry)
    return workers.file_of(entry)


def _renamed(entry: str, names: dict[Path, str]) -> str:
    file = _file_of(entry)
    return entry if file is None else names[file] + parted(entry)[1]


def _resolved(entry: str, folder: Path) -> str:
    file = file_named(entry)
    if file is None or file.parent != Path():
        return entry
    return str((folder / file).resolve()) + parted(entry)[1]


def _with(program: Program, stack: tuple[str, ...]) -> Program:
    patch: Patch = stack[0] if len(stack) == 1 else stack
    return program.model_copy(update={"config": program.config.model_copy(update={"patch": patch})})
