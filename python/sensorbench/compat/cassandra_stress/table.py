"""The table of a profile: its columns and key, from the statement that creates it."""

from collections.abc import Sequence
from dataclasses import dataclass

from sensorbench.compat.cassandra_stress.cql import Token, after, in_parentheses, name_of, tokens_of
from sensorbench.schemas.types import ValueType

# Types of Cassandra whose values sensorbench holds.
TYPES: dict[str, ValueType] = {
    "ascii": "text",
    "text": "text",
    "varchar": "text",
    "boolean": "boolean",
    "tinyint": "integer",
    "smallint": "integer",
    "int": "integer",
    "bigint": "integer",
    "counter": "integer",
    "double": "double",
    "timestamp": "timestamp",
    "blob": "bytes",
    # In CQL's binary form.
    "date": "bytes",
    "decimal": "bytes",
    "float": "bytes",
    "inet": "bytes",
    "time": "bytes",
    "timeuuid": "bytes",
    "uuid": "bytes",
    "varint": "bytes",
}


@dataclass(frozen=True)
class Column:
    """A column: its type in Cassandra."""

    name: str
    cql_type: str
    is_static: bool = False

    @property
    def value_type(self) -> ValueType:
        """Its canonical type."""
        return TYPES[self.cql_type]

    @property
    def has_size(self) -> bool:
        """Whether its values differ in how long they are."""
        return self.value_type == "text" or self.cql_type == "blob"

    @property
    def is_real(self) -> bool:
        """Whether its values are real numbers."""
        return self.cql_type in ("double", "float")


@dataclass(frozen=True)
class Table:
    """A table: the columns of its partition key, those that order the rows of a partition, and all others, in Cassandra's own
    order.
    """

    name: str
    partition_key: tuple[Column, ...]
    clustering: tuple[Column, ...]
    others: tuple[Column, ...]

    @property
    def key(self) -> tuple[Column, ...]:
        """The columns of the primary key."""
        return self.partition_key + self.clustering

    @property
    def columns(self) -> tuple[Column, ...]:
        """All columns, in the order of `SELECT *`."""
        return self.key + self.others

    def column(self, name: str) -> Column:
        """The column of that name. Raises ValueError if there is none."""
        found = next((column for column in self.columns if column.name == name), None)
        if found is None:
            raise ValueError(f"there is no column {name}; expected one of {', '.join(column.name for column in self.columns)}")
        return found


def parse_table(definition: str) -> Table:
    """The table that a statement creates. Raises ValueError for what is not understood, or a type that cannot be had."""
    tokens = tokens_of(definition)
    start = after(tokens, "create", "table")
    if start is None:
        raise ValueError("expected a statement CREATE TABLE …")
    start = after(tokens, "if", "not", "exists") or start
    name, start = name_of(tokens, start)
    if start >= len(tokens) or not tokens[start].is_("("):
        raise ValueError("expected the columns of the table in parentheses")
    parts, _ = in_parentheses(tokens, start)
    columns: dict[str, Column] = {}
    key: list[str] | None = None
    partition: list[str] = []
    for part in parts:
        if part[0].is_("primary") and len(part) > 1 and part[1].is_("key"):
            partition, key = _key(part)
            continue
        column, is_key = _column(part)
        columns[column.name] = column
        if is_key:
            partition, key = [column.name], []
    if key is None:
        raise ValueError("the table has no PRIMARY KEY")
    unknown = [name for name in partition + key if name not in columns]
    if unknown:
        raise ValueError(f"the column {unknown[0]} of the PRIMARY KEY is not there")
    others = [column for column in columns.values() if column.name not in partition + key]
    others.sort(key=lambda column: (not column.is_static, column.name))
    return Table(name, _of(columns, partition), _of(columns, key), tuple(others))


def _of(columns: dict[str, Column], names: Sequence[str]) -> tuple[Column, ...]:
    return tuple(columns[name] for name in names)


def _key(part: list[Token]) -> tuple[list[str], list[str]]:
    """The names of PRIMARY KEY ((a, b), c): those of the partition, and those that order its rows."""
    names, _ = in_parentheses(part, 2)
    first = names[0]
    partition = [parenthese[0].text for parenthese in in_parentheses(first, 0)[0]] if first[0].is_("(") else [first[0].text]
    return partition, [name[0].text for name in names[1:]]


def _column(part: list[Token]) -> tuple[Column, bool]:
    """A column, and whether it is the key by itself."""
    if len(part) < 2 or not part[0].is_word:
        raise ValueError(f"{' '.join(token.text for token in part)!r} is not a column")
    name, cql_type = part[0].text, part[1].text
    is_plain = len(part) < 3 or not part[2].is_("<")
    if cql_type not in TYPES or not is_plain:
        shown = "".join(token.text for token in part[1:]) if not is_plain else cql_type
        raise ValueError(f"the column {name} is {shown}, whose values cannot be made here; types that can: {', '.join(TYPES)}")
    return Column(name, cql_type, after(part, "static") is not None), after(part, "primary", "key") is not None
