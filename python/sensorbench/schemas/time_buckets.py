"""Time buckets that data are divided into, in the words of schema files: as long as the calendar says, or as this many readings
of a dataset take.
"""

import re
from dataclasses import dataclass

from sensorbench.schemas.engine_types import BucketLength

# Days and shorter ones are equally long, in µs; months and years are the calendar's.
_UNITS: dict[str, tuple[str, int]] = {
    "second": ("microseconds", 1_000_000),
    "minute": ("microseconds", 60_000_000),
    "hour": ("microseconds", 3_600_000_000),
    "day": ("microseconds", 86_400_000_000),
    "month": ("months", 1),
    "year": ("months", 12),
}
_LENGTH = re.compile(rf"(?P<count>\d{{1,6}}) (?P<unit>{'|'.join(_UNITS)})s?")
_BATCHES = re.compile(r"batches of (?P<count>[1-9]\d{0,6})")
ROWS = re.compile(r"rows of (?P<count>[1-9]\d{0,5})(?P<unit>k|MB)")

# Rows are as many readings long as a multiple of this, of which the usual sizes of batches (50, 100, 150, 200, 300) are divisors:
# so no batch lies across the border of a row.
READINGS_A_ROW_IN = 600


@dataclass(frozen=True)
class SamplingInterval:
    """How close together the readings of a dataset are, and which share of the whole dataset it is."""

    step_us: int
    scale: float = 1.0


def check_every(every: str) -> str:
    """The text if it is a length of stretches, or will be one when a parameter of the schema is put in; else raises ValueError."""
    if "${" not in every and not any(form.fullmatch(every) for form in (_BATCHES, ROWS)):
        bucket_of(every)
    return every


def needs_sampling_interval(every: str) -> bool:
    """Whether the length depends on the dataset."""
    return bool(_BATCHES.fullmatch(every) or ROWS.fullmatch(every))


def bucket_of(every: str, sampling: SamplingInterval | None = None, bytes_a_reading: float | None = None) -> BucketLength:
    """Time buckets, for the engine: of a length such as `15 minutes` or `1 month`; `batches of 150` readings; `rows of 100k`
    readings or `rows of 5MB`, which shrink with the scale of the dataset. Raises ValueError.
    """
    if batches := _BATCHES.fullmatch(every):
        return {"microseconds": _known(sampling, every).step_us * int(batches["count"])}
    if rows := ROWS.fullmatch(every):
        return {"microseconds": _known(sampling, every).step_us * readings_a_row(rows, _known(sampling, every), bytes_a_reading)}
    found = _LENGTH.fullmatch(every)
    if not found or int(found["count"]) == 0:
        raise ValueError(
            f"expected a length of time such as '15 minutes', '1 day' or '1 month', with one of {', '.join(_UNITS)}; or 'batches of 150', 'rows of 100k', 'rows of 5MB'"
        )
    name, of_one = _UNITS[found["unit"]]
    return {name: int(found["count"]) * of_one}


def readings_a_row(rows: re.Match[str], sampling: SamplingInterval, bytes_a_reading: float | None) -> int:
    """How many readings a row of this width spans."""
    count = int(rows["count"])
    if rows["unit"] == "MB":
        if not bytes_a_reading:
            raise ValueError(f"{rows.group()!r} needs bytes_a_reading at the top of the schema")
        wanted = count * 1e6 / bytes_a_reading
    else:
        wanted = count * 1e3
    return max(1, round(wanted * sampling.scale / READINGS_A_ROW_IN)) * READINGS_A_ROW_IN


def _known(sampling: SamplingInterval | None, every: str) -> SamplingInterval:
    if sampling is None:
        raise ValueError(f"{every!r} is known only with a dataset")
    return sampling
