"""The queries of a profile: what each placeholder stands for, and what columns the answer has."""

import re
from dataclasses import dataclass
from typing import Literal

from sensorbench.compat.cassandra_stress.cql import Token, after, in_parentheses, name_of, placeholders, tokens_of
from sensorbench.compat.cassandra_stress.table import Column, Table
from sensorbench.schemas.types import ValueType

Fields = Literal["samerow", "multirow"]

_COMPARED = ("=", "<", ">", "<=", ">=", "!=")
# Functions whose value is of its argument's type, and those with a type of their own.
_KEEP_TYPE = ("min", "max")
_INTEGER = ("count", "writetime", "ttl")


@dataclass(frozen=True)
class Query:
    """A query: its statement with names for placeholders, the column that each stands for, and the columns of its answer; none
    of a query that writes.
    """

    statement: str
    arguments: dict[str, Column]
    fields: Fields
    answer: tuple[tuple[str, ValueType], ...]


def parse_query(cql: str, table: Table, fields: Fields) -> Query:
    """A query on the profile's table. Raises ValueError for what is not understood."""
    cql = cql.strip().rstrip(";")
    tokens = tokens_of(cql)
    if not tokens or not tokens[0].is_("select", "insert", "update", "delete"):
        raise ValueError("expected SELECT, INSERT, UPDATE or DELETE")
    _check_table(tokens, table)
    arguments: dict[str, Column] = {}
    text, end = "", 0
    for number, place in enumerate(placeholders(tokens)):
        column = _stands_for(tokens, place, table)
        name = f"argument{number}_{column.name}"
        arguments[name] = column
        start = tokens[place].start
        text += f"{cql[end:start]}:{name}"
        end = start + 1
    answer = _answer(tokens, table) if tokens[0].is_("select") else []
    return Query(text + cql[end:], arguments, fields, tuple(answer))


def _check_table(tokens: list[Token], table: Table) -> None:
    place = after(tokens, "into") if tokens[0].is_("insert") else 1 if tokens[0].is_("update") else after(tokens, "from")
    name = None if place is None else name_of(tokens, place)[0]
    if name != table.name:
        raise ValueError(f"it is about {name or 'no table'}; expected the table of the profile, {table.name}")


def _stands_for(tokens: list[Token], place: int, table: Table) -> Column:
    """The column that a placeholder stands for: the one that it is compared with, or that it is put into."""
    before = tokens[max(0, place - 4) : place]
    signs = [token.text for token in before]
    # c = c + ? raises a counter.
    if len(before) == 4 and signs[3] in "+-" and before[2].is_word and signs[1] == "=" and signs[0] == signs[2]:
        return table.column(signs[0])
    if len(before) >= 2 and signs[-1] in _COMPARED and before[-2].is_word:
        return table.column(signs[-2])
    inserted = _inserted(tokens, place)
    if inserted is not None:
        return table.column(inserted)
    around = " ".join([*signs, "?"])
    raise ValueError(f"'… {around}': a placeholder must be compared with a column (column = ?) or be the value of one")


def _inserted(tokens: list[Token], place: int) -> str | None:
    """Of INSERT INTO t (a, b) VALUES (?, ?), the column that has the value at a place."""
    into, values = after(tokens, "into"), after(tokens, "values")
    if into is None or values is None or not values < place:
        return None
    names, _ = in_parentheses(tokens, name_of(tokens, into)[1])
    of_each, _ = in_parentheses(tokens, values)
    own = [name[0].text for name, value in zip(names, of_each, strict=False) if value == [tokens[place]]]
    return own[0] if own else None


def _answer(tokens: list[Token], table: Table) -> list[tuple[str, ValueType]]:
    """The columns that SELECT gives, with names that are words."""
    end = after(tokens, "from")
    start = 2 if tokens[1].is_("distinct", "json") else 1
    if end is None or tokens[1].is_("json"):
        raise ValueError("expected SELECT … FROM …, without JSON")
    selected = tokens[start : end - 1]
    if [token.text for token in selected] == ["*"]:
        return [(column.name, column.value_type) for column in table.columns]
    opened = [Token("(", 0), *selected, Token(")", 0)]
    types = [_type_of(part, table) for part in in_parentheses(opened, 0)[0]]
    return [(f"column{number}", value_type) for number, value_type in enumerate(types)]


def _type_of(part: list[Token], table: Table) -> ValueType:
    alias = after(part, "as")
    part = part if alias is None else part[: alias - 1]
    if len(part) == 1 and part[0].is_word:
        return table.column(part[0].text).value_type
    if len(part) == 4 and part[1].is_("("):
        if part[0].is_(*_INTEGER):
            return "integer"
        if part[0].is_(*_KEEP_TYPE):
            return table.column(part[2].text).value_type
    shown = re.sub(r" ?([(),]) ?", r"\1", " ".join(token.text for token in part))
    functions = ", ".join(f"{name}()" for name in (*_INTEGER, *_KEEP_TYPE))
    raise ValueError(f"the type of {shown} is not known; expected columns, * or {functions}")
