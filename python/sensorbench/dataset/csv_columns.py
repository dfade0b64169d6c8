"""What the columns of a file of text hold: numbers, names, times; and which of them name a sensor."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import duckdb

from sensorbench.dataset.csv_numbers import ALL_SIGNS, COMMA_GROUPS, DECIMAL_COMMA, FORMATS, PLAIN, NumberFormat, common_formats
from sensorbench.dataset.csv_rows import quoted
from sensorbench.errors import UsageError

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
    """What a column holds. `formats` are all in which its cells are numbers, none where they are not; `low` and `high` are of numbers
    in the likeliest of them.
    """

    name: str
    rows: int
    filled: int
    distinct: int
    formats: frozenset[NumberFormat]
    is_whole: bool
    low: float | None
    high: float | None
    missing: list[str]
    examples: list[str]

    @property
    def is_number(self) -> bool:
        """Whether its cells are numbers."""
        return bool(self.formats)

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
    cells = f"(SELECT CASE WHEN {cell} NOT IN ({missing}, '') THEN {cell} END AS cell FROM {table})"
    rows, filled, distinct, *has_sign = connection.sql(
        f"SELECT count(*), count(cell), approx_count_distinct(cell), {_HAS_SIGNS} FROM {cells}"
    ).fetchall()[0]
    signs = "".join(sign for sign, has in zip(ALL_SIGNS, has_sign, strict=True) if has)
    formats = _formats(connection, cells, signs) if filled else frozenset()
    number = next((form for form in FORMATS if form in formats), PLAIN).sql("cell")
    low, high, whole = connection.sql(
        f"SELECT min(number), max(number), count(*) FILTER (regexp_matches(cell, '^[+-]?\\d+$')) "
        f"FROM (SELECT cell, {number} AS number FROM {cells})"
    ).fetchall()[0]
    found = connection.sql(f"SELECT DISTINCT {cell} FROM {table} WHERE {cell} IN ({missing})").fetchall() if formats else []
    examples = connection.sql(f"SELECT DISTINCT {cell} AS cell FROM {table} WHERE {cell} <> '' LIMIT {_EXAMPLES}").fetchall()
    return ColumnProfile(
        name=name,
        rows=rows,
        filled=filled,
        distinct=distinct,
        formats=formats,
        is_whole=filled > 0 and whole == filled,
        low=low,
        high=high,
        missing=[token for (token,) in found],
        examples=[example for (example,) in examples],
    )


_HAS_SIGNS = ", ".join(f"coalesce(bool_or(contains(cell, '{sign.replace(chr(39), chr(39) * 2)}')), false)" for sign in ALL_SIGNS)


def _formats(connection: duckdb.DuckDBPyConnection, cells: str, signs: str) -> frozenset[NumberFormat]:
    """The formats in which all cells are numbers. A few cells are tried first, since most columns that are not numbers show it there."""
    fitting: set[NumberFormat] = {form.as_read(signs) for form in FORMATS}
    for rows in (
        f"(SELECT cell FROM {cells} WHERE cell IS NOT NULL LIMIT 20)",
        f"(SELECT cell FROM {cells} WHERE cell IS NOT NULL)",
    ):
        if not fitting:
            break
        tried = sorted(fitting, key=str)
        counts = ", ".join(f"count({form.sql('cell')})" for form in tried)
        filled, *found = connection.sql(f"SELECT count(*), {counts} FROM {rows}").fetchall()[0]
        fitting = {form for form, count in zip(tried, found, strict=True) if count == filled}
    return frozenset(form for form in FORMATS if form.as_read(signs) in fitting)


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
    """Columns that are named like keys, and others of names as far as they are needed to distinguish rows of one time."""
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
        # A state may distinguish some rows by chance; a name distinguishes most of them.
        if rows_apart < 0.9 * more:
            keys, rows_apart = [*keys, name], more
    return keys


def _distinct(connection: duckdb.DuckDBPyConnection, table: str, time_sql: str, keys: Sequence[str]) -> int:
    columns = ", ".join([f"({time_sql}) AS time", *map(quoted, keys)])
    return int(connection.sql(f"SELECT count(*) FROM (SELECT DISTINCT {columns} FROM {table})").fetchall()[0][0])


def number_format(
    connection: duckdb.DuckDBPyConnection, table: str, file: str, delimiter: str, values: Sequence[ColumnProfile]
) -> tuple[NumberFormat, list[str]]:
    """The format of the numbers in some columns, and what the user should check of it.

    Raises:
        UsageError: if there is no format for all of them, or two that give other numbers.

    """
    fitting = common_formats(value.formats for value in values)
    if not fitting:
        kinds = "; ".join(f"{value.name} ({value.shown}): {min(value.formats, key=FORMATS.index)}" for value in values)
        raise UsageError(f"{file}: the numbers are written in several ways: {kinds}; give columns of one kind with --value")
    if fitting[0] != DECIMAL_COMMA or COMMA_GROUPS not in fitting:
        return fitting[0], []
    column = next(value for value in values if PLAIN not in value.formats)
    cell = f"trim({quoted(column.name)})"
    (without,) = connection.sql(
        f"SELECT count(*) FROM {table} WHERE {column.is_filled_sql} AND NOT contains({cell}, ',') AND TRY_CAST({cell} AS DOUBLE) IS NOT NULL"
    ).fetchall()[0]
    doubt = f"column {column.name}: {column.shown}: a comma could be the decimal separator or the thousands separator"
    # A comma between thousands is missing in small numbers, and parts the cells of a row in files that have it.
    if without or delimiter == ",":
        raise UsageError(f"{file}: {doubt}; say which, with --decimal ',' or --thousands ','")
    return DECIMAL_COMMA, [f"{doubt}; it is taken as the decimal separator; --thousands ',' says otherwise"]


def _ordered(keys: list[str], *, is_long: bool) -> list[str]:
    """The keys with the one last that says what is read, where a row is one reading."""
    if not is_long:
        return keys
    kinds = [name for name in keys if re.search(r"parameter|metric|variable|quantity|measure", name, re.IGNORECASE)]
    kinds = kinds or [name for name in keys if _KIND.search(name)]
    return [name for name in keys if name not in kinds[:1]] + kinds[:1]
