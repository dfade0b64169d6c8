"""How work ends: complete, interrupted, for want of space, or failed; what was done until then stays on disk and says so."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sensorbench.errors import CancelledError, EngineError, FailedError, InterruptedRunError, message_of
from sensorbench.results.files import DiskFullError
from sensorbench.results.writer import WorkWriter


@contextmanager
def written_down(writer: WorkWriter[Any], otherwise: str = "") -> Iterator[None]:
    """Writes down how the work that is done in this context ends; `otherwise` says how it can go on after an interruption.

    Raises InterruptedRunError, DiskFullError and FailedError.
    """
    try:
        yield
    except (KeyboardInterrupt, CancelledError, InterruptedRunError):
        writer.finish("interrupted", "interrupted by the user")
        raise InterruptedRunError(f"interrupted; what was measured until then is in {writer.folder}{otherwise}") from None
    except DiskFullError as error:
        writer.finish("incomplete", str(error))
        raise
    except (EngineError, FailedError) as error:
        message = message_of(error)
        writer.finish("failed", message)
        raise FailedError(message) from None
    writer.finish("complete")
