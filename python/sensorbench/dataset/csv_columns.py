"""What the columns of a file of text hold: numbers, names, times; and which of them name a sensor."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import duckdb

from sensorbench.dataset.csv_rows import quoted

# Cells that mean "no value" where all others are numbers.
_MISSING = ("NA", "N/A", "n/a", "na", "null", "NULL", "None", "nan", "NaN", "NAN", "-", "--", "?", "missing")
_EXAMPLES = 3
# A place or a thing that readings are of, and what is read of it.
_KEY = re.compile(
    r"sensor|device|meter|station|mote|node|probe|logger|machine|pump|room|zone|site|building|house|floor|location|place|plant|"
    r"line|vehicle|client|host|(^|[_\s.-])(id|key|nr|no|unit)([_\s.-]|$)|id$",
    re.IGNORECASE,
)
_KIND = re.compile(
    r"sensor|parameter|metric|variable|quantity|measure|name|tag|point|channel|series|type|field|attribute", re.IGNORECASE
)
_STATE = re.compile(r"status|state|quality|flag|comment|note|remark|unit$|units|error|message|alarm|direction", re.IGNORECASE)
_VALUE = re.compile(r"value|reading|wert|valor|valeur|measurement", re.IGNORECASE)
_ROW_NUMBER = re.compile(
    r"^(index|row|row_?(number|id|no)|no|nr|#|id|record|record_?(id|no|number)|entry_id|unnamed.*)$", re.IGNORECASE
)
# What a dataset has for the names of a sensor: site, zone and sensor.
MAX_KEYS = 3


@dataclass(frozen=True)
class ColumnProfile:
    """What a column holds. `low` and `high` are of numbers; `decimal` is their sign, empty where all are whole."""

    name: str
    rows: int
    filled: int
    distinct: int
    is_number: bool
    is_whole: bool
    decimal: str
    low: float | None
    high: float | None
    missing: list[str]
    examples: list[str]

    @property
    def shown(self) -> str:
        """Some of its values."""
        return ", ".join(self.examples) or "empty"

    @property
    def is_filled_sql(self) -> str:
        """Whether a cell holds something."""
        return f"{quoted(self.name)} IS NOT NULL"

    @property
    def is_repeated(self) -> bool:
        """Whether its values come again and again, as names do."""
        return 0 < self.distinct <= max(1, self.filled // 2)

    def share_like(self, connection: duckdb.DuckDBPyConnection, table: str, pattern: str) -> float:
        """The share of its cells that a pattern is found in."""
        found = connection.execute(
            f"SELECT avg(CAST(regexp_matches({quoted(self.name)}, $pattern) AS INTEGER)) FROM {table} WHERE {self.is_filled_sql}",
            {"pattern": pattern},
        ).fetchall()[0][0]
        return float(found or 0.0)


@dataclass(frozen=True)
class Roles:
    """Which columns name a sensor, the most general one first, and which are its values; of each other column why it is neither."""

    keys: list[str]
    values: list[str]
    ignored: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def profiles_of(connection: duckdb.DuckDBPyConnection, table: str, columns: Sequence[str]) -> list[ColumnProfile]:
    """What the columns of a table of text hold."""
    return [_profile(connection, table, name) for name in columns]


def _profile(connection: duckdb.DuckDBPyConnection, table: str, name: str) -> ColumnProfile:
    cell = f"trim({quoted(name)})"
    missing = ", ".join(f"'{token}'" for token in _MISSING)
    with_comma = f"CASE WHEN NOT contains({cell}, '.') THEN TRY_CAST(replace({cell}, ',', '.') AS DOUBLE) END"
    rows, filled, distinct, points, commas, has_comma, whole, low, high, low_comma, high_comma = connection.sql(
        f"""
        SELECT count(*), count(cell), approx_count_distinct(cell), count(point), count(comma), count(*) FILTER (contains(cell, ',')),
            count(*) FILTER (point = trunc(point) AND NOT contains(cell, '.')),
            min(point), max(point), min(comma), max(comma)
        FROM (SELECT CASE WHEN {cell} NOT IN ({missing}, '') THEN {cell} END AS cell FROM {table}) AS cells,
            LATERAL (SELECT TRY_CAST(cell AS DOUBLE) AS point, {with_comma.replace(cell, "cell")} AS comma) AS numbers
        """
    ).fetchall()[0]
    is_comma = filled > 0 and commas == filled and has_comma > 0
    is_number = filled > 0 and (points == filled or is_comma)
    is_whole = filled > 0 and whole == filled
    found = connection.sql(f"SELECT DISTINCT {cell} FROM {table} WHERE {cell} IN ({missing})").fetchall() if is_number else []
    examples = connection.sql(f"SELECT DISTINCT {cell} AS cell FROM {table} WHERE {cell} <> '' LIMIT {_EXAMPLES}").fetchall()
    return ColumnProfile(
        name=name,
        rows=rows,
        filled=filled,
        distinct=distinct,
        is_number=is_number,
        is_whole=is_whole,
        decimal="" if not is_number or is_whole else "," if is_comma else ".",
        low=low_comma if is_comma else low,
        high=high_comma if is_comma else high,
        missing=[token for (token,) in found],
        examples=[example for (example,) in examples],
    )


def keys_among(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    time_sql: str,
    profiles: Sequence[ColumnProfile],
    named_keys: Sequence[str],
    named_values: Sequence[str],
) -> Roles:
    """Which columns name a sensor and which are its values: those that the user named, or those that look like it."""
    ignored = {profile.name: "empty" for profile in profiles if not profile.filled}
    left = [profile for profile in profiles if profile.filled]
    for profile in left:
        if profile.name not in {*named_keys, *named_values} and _is_row_number(profile):
            ignored[profile.name] = "a number of the row"
    left = [profile for profile in left if profile.name not in ignored]
    if named_keys:
        keys = list(named_keys)
    else:
        free = [profile for profile in left if profile.name not in named_values]
        keys = _found_keys(connection, table, time_sql, free)
    values = list(named_values) or [profile.name for profile in left if profile.is_number and profile.name not in keys]
    notes = []
    for profile in left:
        if profile.name not in {*keys, *values}:
            ignored[profile.name] = "text" if not profile.is_number else "not named by --value"
    limit = MAX_KEYS if len(values) == 1 else MAX_KEYS - 1
    if len(keys) > limit:
        notes.append(
            f"{', '.join(keys[limit:])}: left out, because at most {limit} columns can name a sensor here; choose with --key"
        )
        ignored |= dict.fromkeys(keys[limit:], "one key too many")
        keys = keys[:limit]
    return Roles(_ordered(keys, is_long=len(values) == 1), values, ignored, notes)


def _is_row_number(profile: ColumnProfile) -> bool:
    """Whether it counts the rows."""
    return profile.is_whole and profile.distinct > 0.9 * profile.rows > 1 and _ROW_NUMBER.match(profile.name.strip()) is not None


def _found_keys(connection: duckdb.DuckDBPyConnection, table: str, time_sql: str, profiles: Sequence[ColumnProfile]) -> list[str]:
    """Columns that are named like keys, and others of names as far as they are needed to tell rows of one time apart."""
    names = [
        profile
        for profile in profiles
        if profile.is_repeated
        and not _VALUE.search(profile.name)
        and (not profile.is_number or (profile.is_whole and _KEY.search(profile.name)))
    ]
    keys = [profile.name for profile in names if _KEY.search(profile.name) and not _STATE.search(profile.name)]
    keys += [
        profile.name
        for profile in names
        if profile.name not in keys and _KIND.search(profile.name) and not _STATE.search(profile.name) and not profile.is_number
    ]
    others = [profile.name for profile in names if profile.name not in keys and not profile.is_number]
    rows_apart = _distinct(connection, table, time_sql, keys)
    for name in others:
        more = _distinct(connection, table, time_sql, [*keys, name])
        # A state may tell some rows apart by chance; a name tells most of them apart.
        if rows_apart < 0.9 * more:
            keys, rows_apart = [*keys, name], more
    return keys


def _distinct(connection: duckdb.DuckDBPyConnection, table: str, time_sql: str, keys: Sequence[str]) -> int:
    columns = ", ".join([f"({time_sql}) AS time", *map(quoted, keys)])
    return int(connection.sql(f"SELECT count(*) FROM (SELECT DISTINCT {columns} FROM {table})").fetchall()[0][0])


def _ordered(keys: list[str], *, is_long: bool) -> list[str]:
    """The keys with the one last that says what is read, where a row is one reading."""
    if not is_long:
        return keys
    kinds = [name for name in keys if re.search(r"parameter|metric|variable|quantity|measure", name, re.IGNORECASE)]
    kinds = kinds or [name for name in keys if _KIND.search(name)]
    return [name for name in keys if name not in kinds[:1]] + kinds[:1]
