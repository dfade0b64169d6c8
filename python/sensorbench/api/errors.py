"""The errors that library calls raise, whatever part of the package they come from."""

from collections.abc import Iterator
from contextlib import contextmanager

from pydantic import ValidationError

from sensorbench.errors import (
    DiskFullError,
    EngineError,
    EngineUsageError,
    FailedError,
    InterruptedRunError,
    SensorbenchError,
    UsageError,
    message_of,
    problem_text,
)
from sensorbench.results.stored import DamagedResultsError

__all__ = [
    "DamagedResultsError",
    "DiskFullError",
    "FailedError",
    "InterruptedRunError",
    "NotAvailableError",
    "SensorbenchError",
    "UsageError",
    "own_errors",
]


class NotAvailableError(UsageError):
    """These results do not have what was requested, or an optional library is not installed.

    Examples:
        >>> import sensorbench as sb
        >>> issubclass(sb.NotAvailableError, sb.UsageError)
        True

    """


@contextmanager
def own_errors() -> Iterator[None]:
    """Converts errors of the engine and of value checks into errors of this package.

    Raises:
        UsageError: if an argument or the configuration is wrong.
        FailedError: if the engine, a driver or a target failed.

    """
    try:
        yield
    except EngineUsageError as error:
        raise UsageError(message_of(error)) from error
    except EngineError as error:
        raise FailedError(message_of(error)) from error
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        place = ".".join(map(str, problem["loc"]))
        raise UsageError(f"{place}: {problem_text(problem)}" if place else problem_text(problem)) from error
