"""What a configuration's patch is made of, told from its text alone.

A patch is one entry or a stack of them:

- a name (`warm`, `attempt-1`, `fault-01` ...) or a file `patch.py`: the worker that is installed; one at most
- a file `*.diff` or `*.patch`: a unified diff against SGLang's source, applied to a private copy
- `module:function` or `file.py:function`: a plugin of SGLang, called once a process before the scheduler starts

The last two change SGLang itself: they are sources. A stack of sources alone leaves this project's toggle out, and is
told the threshold by a variable or an argument of its own. Paths may have colons, too: what ends like a diff or Python
is a file, and of a plugin the function comes after the last.
"""

from pathlib import Path

Patch = str | tuple[str, ...]

UNCHANGED = "warm"
"""The fixed toggle, as it is."""
DIFFS = (".diff", ".patch")
PYTHON = ".py"


def entries(patch: Patch) -> tuple[str, ...]:
    """Its parts, in order."""
    return (patch,) if isinstance(patch, str) else patch


def is_diff(entry: str) -> bool:
    """Whether it is a unified diff."""
    return entry.endswith(DIFFS)


def is_plugin(entry: str) -> bool:
    """Whether it is a plugin's function."""
    return ":" in entry and not entry.endswith((*DIFFS, PYTHON))


def parted(entry: str) -> tuple[str, str]:
    """A plugin's module or file, and its function with the colon; anything else whole, and nothing."""
    if not is_plugin(entry):
        return entry, ""
    place, colon, function = entry.rpartition(":")
    return place, colon + function


def file_named(entry: str) -> Path | None:
    """The file that an entry means; None of a name or a module."""
    place = parted(entry)[0]
    return Path(place) if place.endswith(PYTHON) or is_diff(entry) else None


def sources(patch: Patch) -> tuple[str, ...]:
    """The parts that change SGLang itself."""
    return tuple(entry for entry in entries(patch) if is_diff(entry) or is_plugin(entry))


def workers(patch: Patch) -> tuple[str, ...]:
    """The parts that say which worker is installed."""
    return tuple(entry for entry in entries(patch) if entry not in sources(patch))


def worker(patch: Patch) -> str | None:
    """The worker that is installed in the stock one's place; None where SGLang's own does the switching."""
    return next(iter(workers(patch)), None)


def without_worker(patch: Patch) -> Patch:
    """The same SGLang, with nothing of this project's installed in it."""
    return sources(patch) or UNCHANGED


def title(patch: Patch) -> str:
    """The patch in a few words."""
    return " + ".join(entries(patch))
