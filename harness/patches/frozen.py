"""A patch as it is now: what a person changes in its files later isn't what runs."""

from harness.patches.overlay import kept
from harness.patches.reading import text_of
from harness.patches.stack import Patch, entries, file_named, parted


def frozen(patch: Patch) -> Patch:
    """The same patch, of copies of its files, so that all processes of a long run test one content.

    Files aren't run where they lie, as they aren't in a reproducer: one that reads others beside it doesn't find them.
    Built-in patches and a plugin's module stay as they are. Raises UsageError for a file that can't be read or isn't
    UTF-8, and where the cache can't be written.
    """
    copies = tuple(_copied(entry) for entry in entries(patch))
    return copies[0] if isinstance(patch, str) else copies


def _copied(entry: str) -> str:
    file = file_named(entry)
    if file is None:
        return entry
    # Below a folder of the file's folder's name, since reports call a `patch.py` after that.
    copy = kept("frozen", text_of(file), file.parent.resolve().name, file.name)
    return f"{copy}{parted(entry)[1]}"
