"""What became of a call on a host: what it returned or raised, on the way to the controller."""

import pickle
from collections.abc import Callable
from dataclasses import dataclass

from sensorbench import errors
from sensorbench.errors import EngineError, FailedError, message_of


@dataclass(frozen=True)
class Returned:
    """What a call returned."""

    value: object


@dataclass(frozen=True)
class RaisedHere:
    """An error of this package or of its engine, by its name in `errors`: those of the engine are not found by their own module."""

    name: str
    arguments: tuple[object, ...]


@dataclass(frozen=True)
class Raised:
    """Another error."""

    error: Exception


def outcome_of(call: Callable[[], object]) -> bytes:
    """Makes a call, and what became of it."""
    try:
        return pickle.dumps(Returned(call()))
    except Exception as error:  # whatever it is, the controller raises it
        return _raised(error)


def value_of(outcome: bytes) -> object:
    """What a call returned. Raises what it raised."""
    found = pickle.loads(outcome)  # of this package's own process, by a connection that only it can open
    match found:
        case Returned(value):
            return value
        case RaisedHere(name, arguments):
            raise getattr(errors, name)(*arguments)
        case Raised(error):
            raise error
        case _:
            raise AssertionError(f"no outcome: {found!r}")


def _raised(error: Exception) -> bytes:
    if (name := _name_in_errors(error)) is not None:
        return pickle.dumps(RaisedHere(name, error.args))
    try:
        content = pickle.dumps(Raised(error))
        pickle.loads(content)
    except Exception:  # an error that cannot be sent is put into words
        return pickle.dumps(RaisedHere(FailedError.__name__, (f"{type(error).__name__}: {message_of(error)}",)))
    return content


def _name_in_errors(error: Exception) -> str | None:
    names = (name for name in errors.__all__ if getattr(errors, name) is type(error))
    found = next(names, None)
    return found if found is not None else EngineError.__name__ if isinstance(error, EngineError) else None
