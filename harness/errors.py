"""Errors that a person can cause: one line that says what was wrong and what to do; exit code 2."""


class UsageError(Exception):
    """Something that was asked for can't be done as asked; the message is one line."""


class BrokenPatch(UsageError):
    """A patch that applies, but makes no Python."""


class MalformedProgram(UsageError):
    """A program that isn't valid JSON, isn't a program, or is of another version."""


class RefusedConfiguration(UsageError):
    """An engine configuration that the harness or SGLang refuses."""


DEVICE_FAULT = "CUDA error"
"""What an error says that is taken for a device-side fault: its process can't use the GPU any more, since every later
CUDA call raises it again. Some others say it, too, after which it could; that costs a process."""
