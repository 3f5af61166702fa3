"""Files that a person gives, as text."""

from pathlib import Path

from harness.errors import UsageError


def text_of(file: Path) -> str:
    """All of it, line ends as they are; raises UsageError for what can't be read or isn't UTF-8."""
    try:
        return file.read_bytes().decode("utf-8")
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} isn't UTF-8 (at byte {error.start}): convert it") from None
