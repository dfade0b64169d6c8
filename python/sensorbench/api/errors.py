"""What library calls raise: errors of this package, whatever part of it they come from."""

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
    """What these results do not have: another kind of results has it, or nothing of it was kept, or a library is not installed.

    Examples:
        >>> import sensorbench as sb
        >>> issubclass(sb.NotAvailableError, sb.UsageError)
        True

    """


@contextmanager
def own_errors() -> Iterator[None]:
    """Turns what the engine and checks of values raise into errors of this package.

    Raises:
        UsageError: for wrong usage or configuration.
        FailedError: for what the engine, a driver or a target could not do.

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
