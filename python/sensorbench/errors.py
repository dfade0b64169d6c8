"""What can end a command, and with which exit code."""

from sensorbench._engine import CancelledError, EngineError, NamespaceError, SchemaError, TargetError
from sensorbench._engine import UsageError as EngineUsageError

__all__ = [
    "CancelledError",
    "DiskFullError",
    "EngineError",
    "EngineUsageError",
    "FailedError",
    "InterruptedRunError",
    "NamespaceError",
    "SchemaError",
    "SensorbenchError",
    "TargetError",
    "UsageError",
    "message_of",
]


def message_of(error: Exception) -> str:
    """What an error says. One of a schema has two parts: where, and what."""
    return ": ".join(map(str, error.args))


class SensorbenchError(Exception):
    """An expected failure: its message is for the user, who sees no traceback."""

    exit_code = 1


class UsageError(SensorbenchError):
    """Wrong usage or configuration. The message says where (file, line, key), what was expected, and what to do."""

    exit_code = 2


class FailedError(SensorbenchError):
    """What was asked for could not be done, or came out wrong."""


class DiskFullError(FailedError):
    """No space was left for results; what was written before stays."""


class InterruptedRunError(SensorbenchError):
    """The user interrupted; what was done until then is on disk."""

    exit_code = 130
