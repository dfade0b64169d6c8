"""How wide the rows of a schema are meant to be, and how wide they become on the timelines of a dataset."""

from collections.abc import Mapping, Set
from dataclasses import dataclass

from sensorbench.schemas.time_buckets import READINGS_A_ROW_IN, ROWS, SamplingInterval, readings_a_row

# Rows may be wider or narrower than meant by this share, since they are a multiple of this many readings.
MAX_ROUNDING = 0.05
# From this many multiples on, rounding is less than that.
_MIN_MULTIPLES = 10
# The largest row that a server reports, over the one that is meant. Cassandra counts sizes in buckets that grow by 20% and reports the upper end;
# the rest is for what the schema's figure of a reading does not know.
WIDEST_OVER_MEANT = (0.85, 1.35)


@dataclass(frozen=True)
class Timelines:
    """The timelines of a dataset, which are alike: their first time (µs since 1970), how many readings each has, how close these are."""

    first_us: int
    readings: int
    sampling: SamplingInterval


@dataclass(frozen=True)
class RowWidth:
    """The rows of a schema on a dataset.

    Attributes:
        wanted: the width in the words of the schema, for the whole dataset: `20MB`, `100k`.
        readings: of a whole row at the dataset's scale.
        bytes_a_reading: what the schema says of a reading; None if it says nothing.
        wanted_bytes: of a whole row at the dataset's scale; None if the width is in readings.
        parameters: the parameters of the schema that the width follows from.

    """

    wanted: str
    readings: int
    bytes_a_reading: float | None
    wanted_bytes: float | None
    parameters: Set[str]

    @property
    def smallest_scale(self) -> float | None:
        """The scale from which on rounding matters little; None if the width is in readings."""
        if self.bytes_a_reading is None or self.wanted_bytes is None:
            return None
        return _MIN_MULTIPLES * READINGS_A_ROW_IN * self.bytes_a_reading / (float(self.wanted.removesuffix("MB")) * 1e6)

    def widest(self, timelines: Timelines) -> int:
        """Readings of the widest row: a whole one, where there is one between the ends of the timelines."""
        step = timelines.sampling.step_us
        width, first, end = self.readings * step, timelines.first_us, timelines.first_us + timelines.readings * step
        starts = range(first - first % width, end, width)
        spans: list[int] = [min(end, start + width) - max(first, start) for start in (*starts[:2], *starts[-1:])]
        return max(spans) // step

    def why_not_on(self, timelines: Timelines) -> str | None:
        """Why rows cannot be as wide as they are meant to be, with the arithmetic; None if they are."""
        widest = self.widest(timelines)
        if self.wanted_bytes is None or self.bytes_a_reading is None:
            return None
        found = widest * self.bytes_a_reading
        if abs(found / self.wanted_bytes - 1.0) <= MAX_ROUNDING:
            return None
        scale = timelines.sampling.scale
        wanted = f"rows of {self.wanted} are {_bytes(self.wanted_bytes)} at scale {scale:g}"
        if widest < self.readings:
            whole = round(2 * self.wanted_bytes / self.bytes_a_reading / scale)
            return (
                f"{wanted}, but the widest has {widest:,} readings of {self.bytes_a_reading:g} bytes, {_bytes(found)}. A timeline has "
                f"{timelines.readings:,} readings; only in {2 * self.readings:,} there is always a whole row. Rows shrink with the data, so that no "
                f"--scale helps: use a --dataset with {whole:,} readings of each sensor"
            )
        return (
            f"{wanted}, but rows are a multiple of {READINGS_A_ROW_IN} readings of {self.bytes_a_reading:g} bytes: the widest has {widest:,}, "
            f"{_bytes(found)}. It takes --scale {self.smallest_scale:.2g}"
        )

    def why_not_as_reported(self, largest: Mapping[str, int]) -> str | None:
        """What is wrong with the widest row after loading; None if nothing is, or is known.

        Args:
            largest: bytes of the largest row of each table, as the server reports them.

        """
        found = max(largest.values(), default=0)
        if self.wanted_bytes is None or not found:
            return None
        ratio = found / self.wanted_bytes
        low, high = WIDEST_OVER_MEANT
        if low <= ratio <= high:
            return None
        return (
            f"its rows should be {_bytes(self.wanted_bytes)} wide, but the widest that the server reports has {_bytes(found)}: {ratio:.2f} times as "
            f"much, where {low:g} to {high:g} is expected. The schema's bytes_a_reading says what a reading should take"
        )


def row_width_of(every: str, sampling: SamplingInterval, bytes_a_reading: float | None, parameters: Set[str]) -> RowWidth | None:
    """The width of rows as a schema says it (`rows of 20MB`); None if it says a length of time. Raises ValueError."""
    found = ROWS.fullmatch(every)
    if found is None:
        return None
    wanted = float(found["count"]) * 1e6 * sampling.scale if found["unit"] == "MB" else None
    return RowWidth(
        every.removeprefix("rows of "), readings_a_row(found, sampling, bytes_a_reading), bytes_a_reading, wanted, parameters
    )


def _bytes(of: float) -> str:
    return f"{of / 1e6:,.3g} MB" if of >= 1e6 else f"{of / 1e3:,.3g} kB"
