"""Types of what is bound to statements of Cassandra, by the columns of its tables: its full query log has bytes alone."""

import ipaddress
import math
import struct
import uuid
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache

from sensorbench.traffic.entries import Value
from sensorbench.traffic.lexer import CQL, Token, tables_of, tokens_of

# Types by column, of each table of each keyspace.
Columns = Mapping[tuple[str, str], Mapping[str, str]]
# What stands right before a marker that is of no column.
_OF_WORDS = {"limit": "int", "ttl": "int", "timestamp": "bigint"}
_REMEMBERED = 4096
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Days are counted from a number in the middle of those of 32 bits.
_DAY_0 = 1 << 31


def _float(number: float) -> Value:
    return number if math.isfinite(number) else str(number)


def _timestamp(value: bytes) -> Value:
    milliseconds = int.from_bytes(value, signed=True)
    try:
        return (_EPOCH + timedelta(milliseconds=milliseconds)).isoformat(sep=" ", timespec="milliseconds")
    except OverflowError:
        return milliseconds


def _date(value: bytes) -> Value:
    days = int.from_bytes(value) - _DAY_0
    try:
        return (date(1970, 1, 1) + timedelta(days=days)).isoformat()
    except OverflowError:
        return days


# Types of a fixed length have it; others have None.
_Reader = tuple[int | None, Callable[[bytes], Value]]
_READERS: dict[str, _Reader] = {
    **{name: (length, lambda value: int.from_bytes(value, signed=True)) for name, length in (("tinyint", 1), ("smallint", 2))},
    **{name: (length, lambda value: int.from_bytes(value, signed=True)) for name, length in (("int", 4), ("bigint", 8))},
    "counter": (8, lambda value: int.from_bytes(value, signed=True)),
    "float": (4, lambda value: _float(struct.unpack(">f", value)[0])),
    "double": (8, lambda value: _float(struct.unpack(">d", value)[0])),
    "boolean": (1, lambda value: value != b"\0"),
    **dict.fromkeys(("text", "varchar", "ascii"), (None, lambda value: value.decode("utf-8"))),
    "timestamp": (8, _timestamp),
    "date": (4, _date),
    **dict.fromkeys(("uuid", "timeuuid"), (16, lambda value: str(uuid.UUID(bytes=value)))),
    "inet": (None, lambda value: str(ipaddress.ip_address(value))),
}
_AS_BYTES: _Reader = (None, lambda value: f"0x{value.hex()}")


def decoded(value: str | None, its_type: str | None) -> Value:
    """What bytes say (hexadecimal), read as a type; as a constant of bytes where the type is not known or not one of a single value."""
    if value is None:
        return None
    length, read = _READERS.get(its_type or "", _AS_BYTES)
    data = bytes.fromhex(value)
    if length is not None and len(data) != length:
        return f"0x{value}"
    try:
        return read(data)
    except ValueError:
        return f"0x{value}"


class MarkerTypes:
    """The types of the markers of statements."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self.of = lru_cache(_REMEMBERED)(self._of)

    def _of(self, statement: str, keyspace: str | None) -> tuple[str | None, ...]:
        """The type of $1, $2, …; None if it is not known."""
        tables = tables_of(statement, CQL)
        columns = self._of_table(tables[0], keyspace) if tables else {}
        tokens = list(tokens_of(statement, CQL))
        inserted = dict(_inserted(tokens))
        return tuple(
            _type_of_word(statement, tokens, place) or columns.get(inserted.get(place) or _compared(tokens, place) or "")
            for place, token in enumerate(tokens)
            if token.kind == "placeholder"
        )

    def _of_table(self, name: str, keyspace: str | None) -> Mapping[str, str]:
        of_keyspace, _, table = name.rpartition(".")
        return self._columns.get((_name(of_keyspace) if of_keyspace else keyspace or "", _name(table)), {})


def _name(text: str) -> str:
    """A name as the server keeps it: in small letters unless it stands in quotes."""
    return text[1:-1].replace('""', '"') if text.startswith('"') else text.lower()


def _type_of_word(statement: str, tokens: list[Token], place: int) -> str | None:
    """The type of a marker right after LIMIT, TTL or TIMESTAMP; a column of such a name is followed by an operator."""
    before = tokens[place - 1]
    is_next = not statement[before.end : tokens[place].start].strip()
    return _OF_WORDS.get(before.text.lower()) if before.kind == "word" and is_next else None


def _compared(tokens: list[Token], place: int) -> str | None:
    """The column that a marker is compared with or assigned to: the name before it, also before IN and its brackets. A marker right after IN is a
    list of values of its column, not one.
    """
    if place > 0 and tokens[place - 1].kind == "word" and tokens[place - 1].text.lower() == "in":
        return None
    while place > 0:
        place -= 1
        token = tokens[place]
        if token.kind == "name" or (token.kind == "word" and token.text.lower() != "in"):
            return _name(token.text)
        if token.text not in {"(", ","} and token.kind not in {"placeholder", "word"}:
            return None
    return None


def _inserted(tokens: list[Token]) -> Iterator[tuple[int, str]]:
    """The places of the markers of INSERT that are values by themselves, each with its column."""
    words = [token.text.lower() for token in tokens]
    if words[:1] != ["insert"] or "values" not in words:
        return
    split = words.index("values")
    names = [_name(token.text) for token in tokens[words.index("(") : split] if token.kind in {"word", "name"}]
    depth, column = 0, 0
    for place in range(split + 1, len(tokens)):
        depth += {"(": 1, ")": -1}.get(words[place], 0)
        if depth == 0:
            return
        if depth == 1 and words[place] == ",":
            column += 1
        elif (
            depth == 1
            and tokens[place].kind == "placeholder"
            and words[place - 1] in {"(", ","}
            and words[place + 1 : place + 2] in ([","], [")"])
            and column < len(names)
        ):
            yield place, names[column]
