"""What can be chosen of a replay."""

from typing import Annotated

from sensorbench.options import OptionModel, option, parsed
from sensorbench.runner import Seconds

MAX_SPEED = "max"


def _speed(text: str) -> float | None:
    """A speed as a user writes it; None for max. Raises ValueError."""
    if text == MAX_SPEED:
        return None
    try:
        speed = float(text)
    except ValueError:
        speed = 0.0
    if not 0 < speed < float("inf"):
        raise ValueError(f"{text}: expected a number above zero, or {MAX_SPEED}")
    return speed


def _scale(text: str) -> float:
    """A factor as a user writes it. Raises ValueError."""
    try:
        scale = float(text)
    except ValueError:
        scale = 0.0
    if not 0 < scale <= 1000:
        raise ValueError(f"{text}: expected a number above 0, at most 1000")
    return scale


class ReplayOptions(OptionModel):
    """How a trace is replayed."""

    speed: Annotated[float | None, parsed(_speed)] = option(
        "1", "Speed relative to the recording; max: each session sends its next statement when the last one is answered."
    )
    scale_rate: Annotated[float, parsed(_scale)] = option(
        "1", "Replay this multiple of the sessions: copies of all or some of them, each a second later."
    )
    connections: int | None = option(
        None, "Maximum number of connections; if not given, 25% more than there are overlapping sessions.", ge=1
    )
    timeout: Seconds = option("60s", "Time limit of a statement.")
    reads_only: bool = option(False, "Replay only reads; leave out writes, transaction control and everything else.")
