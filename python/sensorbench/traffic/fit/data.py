"""The data that a fitted experiment runs on: a file for each table, and perhaps the statements that make the tables."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path

import duckdb

from sensorbench.dataset.dataset import TRAFFIC, VALUES_PREFIX
from sensorbench.errors import UsageError
from sensorbench.schemas.types import ValueType, canonical_columns
from sensorbench.traffic.fit.statements import bare
from sensorbench.traffic.lexer import Dialect, split_statements

TABLES_FILE = "schema.sql"
_READERS = {".csv": "read_csv", ".tsv": "read_csv", ".parquet": "read_parquet"}
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CASTS = {"TIMESTAMP WITH TIME ZONE": "TIMESTAMP", "HUGEINT": "DOUBLE", "UBIGINT": "BIGINT", "UHUGEINT": "DOUBLE"}
_KEPT = frozenset(
    [
        "BOOLEAN",
        "TINYINT",
        "SMALLINT",
        "INTEGER",
        "BIGINT",
        "UTINYINT",
        "USMALLINT",
        "UINTEGER",
        "FLOAT",
        "DOUBLE",
        "DATE",
        "TIMESTAMP",
        "VARCHAR",
        "BLOB",
    ]
)


@dataclass
class Tables:
    """The tables of an experiment, which are views of a workbench: their columns with types, and what makes them at the recorded database."""

    columns: dict[str, dict[str, ValueType]] = field(default_factory=dict)
    empty: set[str] = field(default_factory=set)
    statements: list[str] = field(default_factory=list)
    # Tables with the columns that an operation looks their rows up by: they get an index where the user says nothing of that.
    looked_up: set[tuple[str, tuple[str, ...]]] = field(default_factory=set)

    def find(self, name: str) -> str | None:
        """The table that a statement names; None if there are no data of it."""
        return next((table for table in self.columns if table.lower() == bare(name)), None)


def read_tables(folder: Path, workbench: duckdb.DuckDBPyConnection, dialect: Dialect | None) -> Tables:
    """Makes the files of a folder views of a workbench.

    Args:
        folder: with TABLE.csv or TABLE.parquet for each table, and perhaps schema.sql.
        workbench: where the views are to be.
        dialect: of the statements in schema.sql.

    Raises:
        UsageError: if a file cannot be read, or is called like nothing that can be a table.

    """
    if not folder.is_dir():
        raise UsageError(f"--data {folder}: no such folder; expected one with TABLE.csv or TABLE.parquet for each table")
    tables = Tables()
    for file in sorted(folder.iterdir()):
        reader = _READERS.get(file.suffix.lower())
        if reader is None:
            continue
        table = file.stem
        if not _WORD.fullmatch(table) or table.startswith(VALUES_PREFIX) or table == TRAFFIC:
            raise UsageError(f"{file}: expected a name that can be a table's: letters, digits and _, and not {TRAFFIC}")
        try:
            tables.columns[table] = _view(workbench, table, reader, file)
            if not workbench.table(table).limit(1).fetchall():
                tables.empty.add(table)
        except (duckdb.Error, ValueError) as error:
            raise UsageError(f"{file}: {error}") from None
    if not tables.columns:
        raise UsageError(f"--data {folder}: no table is there; expected TABLE.csv or TABLE.parquet for each table")
    definitions = folder / TABLES_FILE
    if definitions.exists() and dialect is not None:
        tables.statements = split_statements(definitions.read_text(encoding="utf-8"), dialect)
    return tables


def _view(workbench: duckdb.DuckDBPyConnection, table: str, reader: str, file: Path) -> dict[str, ValueType]:
    path = str(file).replace("'", "''")
    source = f"{reader}('{path}')"
    described = workbench.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()
    columns = ", ".join(_canonical(str(name), str(found)) for name, found, *_ in described)
    workbench.execute(f'CREATE VIEW "{table}" AS SELECT {columns} FROM {source}')
    return canonical_columns(workbench.table(table))


def _canonical(column: str, found: str) -> str:
    if found in _KEPT:
        return f'"{column}"'
    cast = _CASTS.get(
        found, "DOUBLE" if found.startswith("DECIMAL") else "TIMESTAMP" if found.startswith("TIMESTAMP") else "VARCHAR"
    )
    return f'CAST("{column}" AS {cast}) AS "{column}"'


@cache
def _dialects() -> Mapping[str, Mapping[str, str]]:
    return tomllib.loads(files("sensorbench.traffic.fit").joinpath("types.toml").read_text(encoding="utf-8"))


def knows_types(dialect: str) -> bool:
    """Whether it is known how a dialect writes the types of columns."""
    return dialect in _dialects()


def create_statements(tables: Tables, dialect: str) -> list[str]:
    """What makes the tables empty in a dialect of SQL whose types are known."""
    words = _dialects()[dialect]
    quote = words["quote"]
    keys = {(table, column) for table, columns in tables.looked_up for column in columns}
    statements = []
    for table, columns in tables.columns.items():
        listed = ", ".join(
            f"{quote}{name}{quote} {_type(words, value_type, is_key=(table, name) in keys)}"
            for name, value_type in columns.items()
        )
        statements.append(f"CREATE TABLE {quote}{table}{quote} ({listed})")
    return statements


def _type(words: Mapping[str, str], value_type: ValueType, *, is_key: bool) -> str:
    return words.get("key_text", words["text"]) if value_type == "text" and is_key else words[value_type]


def index_statements(tables: Tables, dialect: str, used: Iterable[str]) -> list[str]:
    """What makes an index for each operation on the columns that it looks rows up by, in tables that are used. One that another begins
    with is left out.
    """
    quote, wanted = _dialects()[dialect]["quote"], set(used)
    needed = sorted(table_and_columns for table_and_columns in tables.looked_up if table_and_columns[0] in wanted)
    kept = [
        (table, columns)
        for table, columns in needed
        if not any(table == other and len(columns) < len(more) and more[: len(columns)] == columns for other, more in needed)
    ]
    return [
        f"CREATE INDEX {quote}{table}_{number}{quote} ON {quote}{table}{quote} "
        f"({', '.join(f'{quote}{column}{quote}' for column in columns)})"
        for number, (table, columns) in enumerate(kept, start=1)
    ]
