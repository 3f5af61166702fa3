"""What a person names as a patch, checked before anything starts."""

from collections.abc import Sequence
from pathlib import Path

from harness.errors import UsageError
from harness.patches import checkout, diffs, workers
from harness.patches.reading import text_of
from harness.patches.stack import Patch, file_named, is_diff, is_plugin
from harness.patches.stack import workers as named_workers


def patch_of(given: Sequence[str]) -> Patch:
    """The patch meant by names, files, plugins and folders, in order; raises UsageError for what can't be one."""
    entries = tuple(_entry(text) for text in given)
    if len(named_workers(entries)) > 1:
        raise UsageError(f"{' and '.join(named_workers(entries))} are both workers: give one of them")
    return entries[0] if len(entries) == 1 else entries


def _entry(text: str) -> str:
    file = file_named(text)
    if file is None and Path(text).is_dir() and text not in workers.names():
        return str(checkout.as_diff(Path(text)))
    if is_diff(text):
        diffs.read(Path(text))
    elif is_plugin(text):
        if file is not None and not file.is_file():
            raise UsageError(f"plugin {text}: no such file")
    else:
        workers.file_of(text)
    if file is not None:
        text_of(file)  # reports and reproducers quote it
    return text
