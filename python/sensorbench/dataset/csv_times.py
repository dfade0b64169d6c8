"""Which column of a file is its time, and how the time is written."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import duckdb

from sensorbench.dataset.csv_columns import ColumnProfile
from sensorbench.dataset.mapping import TimeColumn

# A column is of times when at least this many of its cells are.
MIN_SHARE = 0.95
_NAME = re.compile(r"time|date|datum|zeit|^ts$|_ts$|^ts_|epoch|unix|fecha|heure|recorded|created|^at$|_at$", re.IGNORECASE)
_PARTS = ("year", "month", "day", "hour", "minute", "second")
_MIN_PARTS = 3
_OFFSET = r"\d[0-9:.]*\s?(Z|[+-]\d{2}(:?\d{2})?)$"
_ISO = r"^\d{4}-\d{1,2}-\d{1,2}"
# As strptime has them; where several fit, the first one counts. Days before months, as most of the world writes them.
_DATES = (
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%d.%m.%Y",
    "%d-%m-%Y",
    "%Y/%m/%d",
    "%Y.%m.%d",
    "%Y%m%d",
    "%d %b %Y",
    "%b %d %Y",
    "%d/%m/%y",
    "%m/%d/%y",
    "%d.%m.%y",
)
_TIMES = (
    " %H:%M:%S",
    " %H:%M",
    " %H:%M:%S.%f",
    " %I:%M:%S %p",
    " %I:%M %p",
    "T%H:%M:%S",
    " %H.%M.%S",
    "%H%M%S",
    "T%H%M%S",
    ", %H:%M:%S",
    "",
)
_SWAPPED = {"%d/%m": "%m/%d", "%m/%d": "%d/%m"}
# Numbers since 1970, from 1973 to 2100.
_UNITS = {"s": (1e8, 4.2e9), "ms": (1e11, 4.2e12), "us": (1e14, 4.2e15), "ns": (1e17, 4.2e18)}


@dataclass(frozen=True)
class FoundTime:
    """The time of a row, what the user should check, and whether the cells say how far they are from UTC."""

    time: TimeColumn
    notes: list[str]
    has_offset: bool = False


def find_time(
    connection: duckdb.DuckDBPyConnection, table: str, profiles: Sequence[ColumnProfile], named: Sequence[str]
) -> FoundTime | None:
    """The time of the rows of a table of text: of the columns that the user named, or of those that look like it."""
    parts = _parts(profiles)
    if parts:
        return FoundTime(TimeColumn(columns=parts), [])
    for profile in sorted(profiles, key=lambda profile: not _NAME.search(profile.name)):
        found = _in_column(connection, table, profile, is_named=bool(named) or bool(_NAME.search(profile.name)))
        if found is not None:
            return _with_time_of_day(connection, table, found, profile, profiles)
    return None


def _parts(profiles: Sequence[ColumnProfile]) -> list[str]:
    """Columns of year, month, day and so on, as far as there are; nothing if the first three are not."""
    by_name = {profile.name.strip().lower(): profile for profile in profiles if profile.is_number}
    found: list[str] = []
    for part in _PARTS:
        if part not in by_name:
            break
        found.append(by_name[part].name)
    return found if len(found) >= _MIN_PARTS else []


def _in_column(connection: duckdb.DuckDBPyConnection, table: str, profile: ColumnProfile, *, is_named: bool) -> FoundTime | None:
    if profile.is_number:
        return _since_1970(profile) if is_named else None
    if not profile.filled:
        return None
    if (
        _fits(connection, table, profile, TimeColumn(column=profile.name))
        and profile.share_like(connection, table, _ISO) >= MIN_SHARE
    ):
        has_offset = profile.share_like(connection, table, _OFFSET) >= MIN_SHARE
        return FoundTime(TimeColumn(column=profile.name), [], has_offset=has_offset)
    for written in _formats():
        if _fits(connection, table, profile, TimeColumn(column=profile.name, format=written)):
            return _rather_swapped(connection, table, profile, written)
    return None


def _since_1970(profile: ColumnProfile) -> FoundTime | None:
    low, high = profile.low, profile.high
    for unit, (first, last) in _UNITS.items():
        if low is not None and high is not None and first <= low and high <= last:
            return FoundTime(TimeColumn.model_validate({"column": profile.name, "unit": unit}), [])
    return None


def _formats() -> Iterator[str]:
    for time in _TIMES:
        for date in _DATES:
            yield date + time


def _fits(connection: duckdb.DuckDBPyConnection, table: str, profile: ColumnProfile, time: TimeColumn) -> bool:
    """Whether nearly all cells are times that are written like this; a few are tried first."""
    few = f"(SELECT * FROM {table} WHERE {profile.is_filled_sql} LIMIT 20)"
    for rows in (few, f"(SELECT * FROM {table} WHERE {profile.is_filled_sql})"):
        count, fitting = connection.sql(f"SELECT count(*), count({time.sql()}) FROM {rows}").fetchall()[0]
        if fitting < MIN_SHARE * count:
            return False
    return True


def _rather_swapped(connection: duckdb.DuckDBPyConnection, table: str, profile: ColumnProfile, written: str) -> FoundTime:
    """The time by a format. Where days and months could be the other way round, it is taken as it makes the shorter span: read the wrong way,
    the days of a month are spread over a year.
    """
    form = next((form for form in _SWAPPED if written.startswith(form)), None)
    choices = [TimeColumn(column=profile.name, format=written)]
    if form is not None:
        swapped = TimeColumn(column=profile.name, format=written.replace(form, _SWAPPED[form]))
        choices += [swapped] if _fits(connection, table, profile, swapped) else []
    spans = [connection.sql(f"SELECT max({time.sql()}) - min({time.sql()}) FROM {table}").fetchall()[0][0] for time in choices]
    ranked = sorted(zip(spans, choices, strict=True), key=lambda pair: pair[0])
    (span, chosen), others = ranked[0], ranked[1:]
    doubts = [
        f"{profile.name}: {profile.shown} is read as {chosen.format} ({span}); it could also be {other.format} ({longer}), "
        "which --time-format says"
        for longer, other in others
    ]
    return FoundTime(chosen, doubts)


def _with_time_of_day(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    found: FoundTime,
    profile: ColumnProfile,
    profiles: Sequence[ColumnProfile],
) -> FoundTime:
    """The same, or with the time of day out of a second column, where the first one has only dates."""
    written = found.time.format
    date = (
        written if written in _DATES else "%Y-%m-%d" if profile.share_like(connection, table, _ISO + "$") >= MIN_SHARE else None
    )
    if date is None:
        return found
    for other in profiles:
        if other.name == profile.name or not re.search(r"time|zeit|hour|uhr|hora|heure", other.name, re.IGNORECASE):
            continue
        for time in _TIMES:
            if time.startswith(" "):
                both = TimeColumn(columns=[profile.name, other.name], format=date + time)
                if _fits(connection, table, profile, both):
                    return FoundTime(both, found.notes)
    return found
