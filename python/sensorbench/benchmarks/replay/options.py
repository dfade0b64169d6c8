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
        "1", "How many times as fast as recorded; max: each session as fast as it is answered."
    )
    scale_rate: Annotated[float, parsed(_scale)] = option(
        "1", "Replay this many times the sessions: copies of all or a share of them, each a second later."
    )
    connections: int | None = option(
        None, "Open at most so many connections; as many as sessions overlap, and a quarter more, if not given.", ge=1
    )
    timeout: Seconds = option("60s", "How long a statement may take.")
    reads_only: bool = option(False, "Replay reads alone: leave out writes, transaction control and everything else.")
