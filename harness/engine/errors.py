"""What can go wrong with an engine that isn't the fault of what was asked."""


class EngineError(Exception):
    """The engine can't go on."""


class ResetError(EngineError):
    """After a reset something differs from the state after boot."""


class NoProgress(EngineError):
    """Requests are pending, and no iteration brings them further."""
