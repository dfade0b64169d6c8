"""A profile of cassandra-stress' user mode (StressProfile.java and StressYaml.java of Cassandra 5.0), checked key by key.

What cannot be had is refused, never left out: a load that is another one than the file says would be measured otherwise.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal, TypeVar, get_args

from sensorbench.compat.cassandra_stress.cql import after, tokens_of, without_keyspace
from sensorbench.compat.cassandra_stress.distributions import Distribution, Ratio, parse_distribution, parse_ratio
from sensorbench.compat.cassandra_stress.queries import Fields, Query, parse_query
from sensorbench.compat.cassandra_stress.table import Column, Table, parse_table
from sensorbench.compat.cassandra_stress.yaml_file import Said, read_yaml
from sensorbench.errors import UsageError
from sensorbench.schemas.operations import WORD

BatchType = Literal["LOGGED", "UNLOGGED", "COUNTER"]

KEYS = ("keyspace", "keyspace_definition", "table", "table_definition", "extra_definitions", "columnspec", "insert", "queries")
_COLUMN_KEYS = ("name", "size", "population", "cluster")
_INSERT_KEYS = ("partitions", "batchtype", "select", "row-population")
_QUERY_KEYS = ("cql", "fields")
# The table with sensorbench's mark.
_OUR_TABLE = "sensorbench"
INSERT = "insert"

_SIZE = Distribution("uniform", 4, 8)
_POPULATION = Distribution("uniform", 1, 100_000_000_000)
# Of times, fifty years: of milliseconds since 1970, or of days. Of times of day, nanoseconds.
_POPULATION_OF_TIMES = Distribution("uniform", 1, 50 * 365 * 24 * 3600 * 1000)
_POPULATIONS = {
    "timestamp": _POPULATION_OF_TIMES,
    "timeuuid": _POPULATION_OF_TIMES,
    "date": Distribution("uniform", 1, 50 * 365),
    "time": Distribution("uniform", 1, 24 * 3600 * 10**9 - 1),
}
_ONE = Distribution("fixed", 1, 1)

Parsed = TypeVar("Parsed")


@dataclass(frozen=True)
class ColumnSpec:
    """How the values of a column are made: how long they are, which there are, and, of a column that orders the rows of a
    partition, how many there are below each value of the columns before it.
    """

    size: Distribution
    population: Distribution
    cluster: Distribution


@dataclass(frozen=True)
class Insert:
    """What one insertion writes: rows of this many partitions, a share of those of each, as one batch."""

    partitions: Distribution
    select: Ratio
    batch: BatchType


@dataclass(frozen=True)
class Keyspace:
    """What a profile wants of its keyspace, where it says so: copies of each row, and whether writes go to the commit log."""

    name: str
    copies: int | None = None
    durable_writes: bool | None = None


@dataclass(frozen=True)
class Profile:
    """A profile. `create` are the statements that make the table in a keyspace that is entered, with where they stand in the
    file.
    """

    path: Path
    said: Said
    keyspace: Keyspace
    table: Table
    create: tuple[tuple[str, Said], ...]
    columns: dict[str, ColumnSpec]
    insert: Insert
    queries: dict[str, Query]

    def error(self, key: str, message: str) -> UsageError:
        """An error about a key of the file."""
        said = self.said
        for part in key.split("."):
            said = said.mapping.get(part, said)
        return said.error(message)


def read_profile(path: Path) -> tuple[Profile, list[str]]:
    """The profile in a file, and what to report about it. Raises UsageError, naming file, line and key, for what is not supported."""
    said = read_yaml(path)
    _check_keys(said, said.mapping, KEYS, ignored=("seed", "specname", "token_range_queries"))
    if "token_range_queries" in said.mapping and said.mapping["token_range_queries"].value not in ("", {}):
        raise said.mapping["token_range_queries"].error("queries of token ranges are not supported; expected queries")
    keyspace = _keyspace(said)
    definition = _required(said, "table_definition")
    table = _parsed(definition, parse_table, without_keyspace(definition.text, keyspace.name))
    _check_table(said, table)
    more = said.mapping["extra_definitions"].members if "extra_definitions" in said.mapping else []
    create = tuple((without_keyspace(said.text, keyspace.name).rstrip("; \n"), said) for said in [definition, *more])
    profile = Profile(
        path=path,
        said=said,
        keyspace=keyspace,
        table=table,
        create=create,
        columns=_columns(said, table),
        insert=_insert(said, table),
        queries=_queries(said, table, keyspace),
    )
    return profile, _notes(said)


def _check_keys(said: Said, mapping: dict[str, Said], known: tuple[str, ...], ignored: tuple[str, ...] = ()) -> None:
    for key, value in mapping.items():
        if key not in known + ignored:
            raise value.error(f"this key is not supported; expected one of {', '.join(known)}")


def _required(said: Said, key: str) -> Said:
    found = said.mapping.get(key)
    if found is None or found.value == "":
        raise said.error(f"{key} is missing")
    return found


def _parsed(said: Said, parse: Callable[[str], Parsed], text: str | None = None) -> Parsed:
    """What a value says. An error has its place."""
    try:
        return parse(said.text if text is None else text)
    except ValueError as error:
        raise said.error(str(error)) from None


def _keyspace(said: Said) -> Keyspace:
    name = _required(said, "keyspace").text.lower()
    definition = said.mapping.get("keyspace_definition")
    if definition is None or definition.value == "":
        return Keyspace(name)
    text = definition.text
    if after(tokens_of(text), "create", "keyspace") is None:
        raise definition.error("expected a statement CREATE KEYSPACE …")
    # 'replication_factor' of a simple strategy, or a number for each data centre.
    copies = {int(found) for found in re.findall(r"'[^']+'\s*:\s*'?(\d+)'?", text)}
    durable = re.search(r"durable_writes\s*=\s*'?(true|false)", text, re.IGNORECASE)
    return Keyspace(
        name,
        copies=copies.pop() if len(copies) == 1 else None,
        durable_writes=None if durable is None else durable[1].lower() == "true",
    )


def _check_table(said: Said, table: Table) -> None:
    named = _required(said, "table")
    if named.text.lower() != table.name.lower():
        raise named.error(f"{named.text!r} is not the table of table_definition, {table.name}")
    if table.name == _OUR_TABLE:
        raise named.error(f"sensorbench has a table {_OUR_TABLE} of its own; name it otherwise")
    for column in table.columns:
        if not re.match(WORD, column.name):
            raise said.mapping["table_definition"].error(
                f"the column {column.name!r}: expected a word: letters, digits and underscores, no digit first"
            )


def _columns(said: Said, table: Table) -> dict[str, ColumnSpec]:
    specs = {column.name: _default(column) for column in table.columns}
    for member in said.mapping["columnspec"].members if "columnspec" in said.mapping else []:
        keys = {key.lower(): value for key, value in member.mapping.items()}
        _check_keys(member, keys, _COLUMN_KEYS)
        if "name" not in keys:
            raise member.error("name is missing: expected the name of a column")
        column = _parsed(keys["name"], lambda text: table.column(text.lower()))
        given = {key: _parsed(keys[key], parse_distribution) for key in ("size", "population", "cluster") if key in keys}
        if "size" in given and not given["size"].min >= 0:
            raise keys["size"].error("a size below 0")
        if "cluster" in given and given["cluster"].min < 1:
            raise keys["cluster"].error("expected at least 1")
        specs[column.name] = replace(specs[column.name], **given)
    return specs


def _default(column: Column) -> ColumnSpec:
    """What holds where nothing is said."""
    return ColumnSpec(_SIZE, _POPULATIONS.get(column.cql_type, _POPULATION), _ONE)


def _insert(said: Said, table: Table) -> Insert:
    part = said.mapping.get("insert")
    keys = {key.lower(): value for key, value in part.mapping.items()} if part else {}
    if part:
        _check_keys(part, keys, _INSERT_KEYS)
    populated = keys.get("row-population")
    if populated and not _parsed(populated, parse_ratio).is_all:
        raise populated.error("rows without all columns are not supported; expected fixed(1)/1")
    partitions = _parsed(keys["partitions"], parse_distribution) if "partitions" in keys else _ONE
    if partitions.min < 1:
        raise keys["partitions"].error("expected at least 1")
    select = _parsed(keys["select"], parse_ratio) if "select" in keys else Ratio(_ONE, 1)
    batch: BatchType = _one_of(keys["batchtype"], get_args(BatchType), str.upper) if "batchtype" in keys else "LOGGED"
    has_counters = any(column.cql_type == "counter" for column in table.columns)
    if "batchtype" in keys and has_counters != (batch == "COUNTER"):
        raise keys["batchtype"].error(
            f"a table {'with' if has_counters else 'without'} counters is not written by {batch} batches"
        )
    return Insert(partitions, select, "COUNTER" if has_counters else batch)


def _one_of(said: Said, known: tuple[Parsed, ...], form: Callable[[str], str]) -> Parsed:
    found = next((parsed for parsed in known if parsed == form(said.text)), None)
    if found is None:
        raise said.error(f"{said.text!r}: expected one of {', '.join(map(str, known))}")
    return found


def _queries(said: Said, table: Table, keyspace: Keyspace) -> dict[str, Query]:
    part = said.mapping.get("queries")
    queries = {}
    for name, query in part.mapping.items() if part else ():
        _check_keys(query, query.mapping, _QUERY_KEYS)
        if not re.match(WORD, name) or name.lower() == INSERT:
            raise query.error("the name of a query must be a word other than insert")
        cql = _required(query, "cql")
        fields: Fields = "multirow"
        if "fields" in query.mapping:
            fields = _one_of(query.mapping["fields"], get_args(Fields), str.lower)
        queries[name.lower()] = _parsed(
            cql, partial(parse_query, table=table, fields=fields), without_keyspace(cql.text, keyspace.name)
        )
    return queries


def _notes(said: Said) -> list[str]:
    """What was said and does not count."""
    idle = [key for key in ("seed", "specname") if key in said.mapping]
    return [f"{', '.join(idle)}: not used; name a seed with --seed"] if idle else []
