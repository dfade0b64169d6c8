"""The status of results: complete, interrupted, out of space or failed; what was done until then stays on disk and says so."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sensorbench.errors import (
    BudgetOverError,
    CancelledError,
    DiskFullError,
    EngineError,
    FailedError,
    InterruptedRunError,
    LostGeneratorError,
    LostHostError,
    UsageError,
    message_of,
)
from sensorbench.interrupts import count, held_back, let_through
from sensorbench.results.writer import ManifestWriter
from sensorbench.runner import Servers, why_servers_ended

_INTERRUPTED = (KeyboardInterrupt, CancelledError, InterruptedRunError)


@contextmanager
def record_status(writer: ManifestWriter[Any], otherwise: str, servers: Servers) -> Iterator[None]:
    """Records how what is done in this context ends; `otherwise` says how it can continue after an interruption. A failure that has cost one of the
    lab's `servers` says how that one ended.

    What is refused before anything was done leaves nothing. A budget that is over ends the context without an error. Raises InterruptedRunError, DiskFullError and FailedError.
    """
    with held_back():
        interruptions = count()
        try:
            with let_through():
                yield
        except DiskFullError as error:
            writer.finish("out of space", str(error))
            raise
        except BudgetOverError as error:
            writer.finish("interrupted", str(error))
            return
        except (LostGeneratorError, LostHostError) as error:
            writer.finish("interrupted", str(error))
            raise type(error)(f"{error}; what was measured until then is in {writer.folder}{otherwise}") from None
        except BaseException as error:
            if count() > interruptions or isinstance(error, _INTERRUPTED):
                # A run that is interrupted says which hosts did not answer.
                lost = f"; {error}" if isinstance(error, KeyboardInterrupt) and str(error) else ""
                writer.finish("interrupted", f"interrupted by the user{lost}")
                where = f"interrupted{lost}; what was measured until then is in {writer.folder}{otherwise}"
                raise InterruptedRunError(where) from None
            if isinstance(error, UsageError) and writer.withdraw_if_bare():
                raise
            if isinstance(error, (EngineError, FailedError)):
                message = message_of(error)
                if (why := why_servers_ended(servers)) not in message:
                    message = f"{message}; {why}"
                writer.finish("failed", message)
                raise FailedError(message) from None
            writer.finish("failed", str(error) or type(error).__name__)
            raise
        writer.finish("complete")
