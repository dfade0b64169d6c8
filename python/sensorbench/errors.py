"""What can end a command, and with which exit code."""

from typing import TYPE_CHECKING

from sensorbench._engine import CancelledError, EngineError, NamespaceError, SchemaError, TargetError
from sensorbench._engine import UsageError as EngineUsageError

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

__all__ = [
    "BudgetOverError",
    "CancelledError",
    "ClusterLostError",
    "DiskFullError",
    "EngineError",
    "EngineUsageError",
    "FailedError",
    "InterruptedRunError",
    "LostGeneratorError",
    "LostHostError",
    "NamespaceError",
    "SchemaError",
    "SensorbenchError",
    "TargetError",
    "UndecidedError",
    "UsageError",
    "message_of",
    "problem_text",
]


def message_of(error: Exception) -> str:
    """What an error says. One of a schema has two parts: where, and what."""
    return ": ".join(map(str, error.args))


def problem_text(problem: "ErrorDetails") -> str:
    """What pydantic says of a value. What a check of ours said is reported as it stands, without pydantic's "Value error, " before it."""
    return str(problem["ctx"]["error"]) if problem["type"] == "value_error" else problem["msg"]


class SensorbenchError(Exception):
    """An expected failure: its message is for the user, who sees no traceback."""

    exit_code = 1


class UsageError(SensorbenchError):
    """Wrong usage or configuration. The message says where (file, line, key), what was expected, and what to do."""

    exit_code = 2


class FailedError(SensorbenchError):
    """What was asked for could not be done, or came out wrong."""


class UndecidedError(SensorbenchError):
    """What was to be decided could not be, within the time or the repetitions that the user gave. It is neither passed nor failed."""

    exit_code = 3


class ClusterLostError(FailedError):
    """Servers of the user's could not be put back as they were; nothing else is tried there."""


class DiskFullError(FailedError):
    """No space was left for results; what was written before stays."""


class BudgetOverError(SensorbenchError):
    """The time is over that the user gave; what was done until then is on disk, and can be resumed. That is not a failure."""


class InterruptedRunError(SensorbenchError):
    """The user interrupted; what was done until then is on disk."""

    exit_code = 130


class LostGeneratorError(InterruptedRunError):
    """A load generator ended before its run did, or answered no more; what was done until then is on disk."""

    exit_code = 1


class LostHostError(InterruptedRunError):
    """A host is gone, or answers no more; what was done until then is on disk."""

    exit_code = 1
