"""Replaces the literals of a trace by others from which nobody can infer the originals without the key.

Each literal becomes a value of the same form that is computed from its HMAC-SHA-256 (RFC 2104): equal literals become equal ones, so that
how often values occur, and which statements have the same, stays as it was. Where order is kept, a literal becomes its rank among all that
are there, spread by the key; that says which of two was smaller, and how many lie between them, and nothing else.
"""

import hashlib
import hmac
import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from pathlib import Path

import duckdb
import pyarrow as pa

from sensorbench.errors import UsageError
from sensorbench.traffic.lexer import TEXTS, Dialect, literals_of
from sensorbench.traffic.trace import (
    STATEMENTS,
    TRACE_FILE,
    StatementWriter,
    Template,
    Trace,
    read_statements,
    read_trace,
    statements_file,
)
from sensorbench.traffic.workbench import workbench_on_disk

MIN_KEY_BYTES = 16
Value = str | int | float | bool | None
_REMEMBERED = 1 << 16
_NUMBER = re.compile(r"([+-]?)(?=\.?\d)(\d*)(\.?)(\d*)((?:[eE][+-]?\d+)?)")
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)([ T]\d\d:\d\d(?::\d\d)?)?(\.\d{1,6})?(\s*(?:Z|[+-]\d\d(?::?\d\d)?)?)")
_BYTES = re.compile(r"0x(?:[0-9a-f]{2})+")
# Values of at most this many bytes change places with one another; of longer ones the digests are different.
_MAX_EXCHANGED_BYTES = 16
_DIALECTS: dict[str, Dialect] = {"postgresql": "postgresql", "mysql": "mysql", "cassandra": "cassandra"}
# Whose templates have no literals in them.
_WITHOUT_LITERALS = frozenset({"redis", "influxdb", "prometheus"})
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_MIN_LETTERS, _MAX_LETTERS = 12, 24
_ROUNDS = 8
_ORDER_GAP = 1 << 10
# Times change places within two hundred years.
_FIRST_DAY, _DAYS, _DAY = datetime(1900, 1, 1), 73_048, 86_400


def read_key(path: Path) -> bytes:
    """The key in a file. Raises UsageError if it cannot be read, or is short enough to be guessed."""
    try:
        key = path.read_bytes().strip()
    except OSError as error:
        raise UsageError(f"--key {path}: {error.strerror}; make one with: head -c 32 /dev/urandom | base64 > {path}") from None
    if len(key) < MIN_KEY_BYTES:
        raise UsageError(
            f"--key {path}: {len(key)} bytes; expected at least {MIN_KEY_BYTES}: head -c 32 /dev/urandom | base64 > {path}"
        )
    return key


class Anonymiser:
    """Replaces literals by what a key makes of them."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self.replaced = lru_cache(_REMEMBERED)(self._replaced)

    def _digest(self, text: str) -> bytes:
        return hmac.new(self._key, text.encode("utf-8", "surrogatepass"), hashlib.sha256).digest()

    def _replaced(self, text: str) -> str:
        """What stands for a text: a number for a number, a time for a time, bytes for bytes, else letters."""
        if _BYTES.fullmatch(text):
            return self._bytes_like(text)
        if found := _NUMBER.fullmatch(text):
            return self._number_like(found)
        if (found := _TIME.fullmatch(text)) and (replaced := self._time_like(found)):
            return replaced
        return _letters(self._digest(text), max(_MIN_LETTERS, min(len(text), _MAX_LETTERS)))

    def value(self, value: Value) -> Value:
        """What stands for a literal. Null, true and false say nothing by themselves and stay."""
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            return self.replaced(value)
        replaced = self.replaced(json.dumps(value))
        return int(replaced) if isinstance(value, int) else float(replaced)

    def text(self, statement: str, dialect: Dialect) -> str:
        """A template whose literals that stand in it are replaced, too: those of statements that take no parameters, and of those that were
        prepared with some. Comments go.
        """
        parts, done = [], 0
        for token, _ in literals_of(statement, dialect):
            if token.kind in {"comment", "hint"}:
                replaced = " "
            else:
                replaced = f"'{self.replaced(token.text)}'" if token.kind in TEXTS else self.replaced(token.text)
            parts += [statement[done : token.start], replaced]
            done = token.end
        return "".join([*parts, statement[done:]])

    def _bytes_like(self, text: str) -> str:
        """As many bytes."""
        digits = len(text) - 2
        if digits <= 2 * _MAX_EXCHANGED_BYTES:
            return f"0x{self._exchanged(int(text, 16), 16**digits, f'bytes {digits}'):0{digits}x}"
        made = ""
        while len(made) < digits:
            made += self._digest(f"{len(made)} {text}").hex()
        return f"0x{made[:digits]}"

    def _number_like(self, found: "re.Match[str]") -> str:
        """A number of as many digits, with the sign, the places after the point and the exponent that it has, so that it fits where the other
        did. Numbers of one form change places with one another: different ones stay different.
        """
        sign, whole, point, places, exponent = found.groups(default="")
        digits = whole + places
        low, high = _range_of(int(digits), len(digits), has_places=bool(point))
        made = f"{low + self._exchanged(int(digits) - low, high - low, f'{len(whole)}.{len(places)}'):0{len(digits)}d}"
        return f"{sign}{made[: len(whole)]}{point}{made[len(whole) :]}{exponent}"

    def _time_like(self, found: "re.Match[str]") -> str | None:
        """A time of the same form; None for what only looks like one."""
        day, clock, fraction, zone = found.groups(default="")
        try:
            time = datetime.fromisoformat(f"{day} {clock.strip(' T') or '00:00'}")
        except ValueError:
            return None
        unit = 1 if clock.count(":") == 2 else 60 if clock else _DAY
        count = _DAYS * _DAY // unit
        index = int((time - _FIRST_DAY).total_seconds()) // unit
        if not 0 <= index < count:
            return None
        made = _FIRST_DAY + timedelta(seconds=self._exchanged(index, count, f"time {unit}") * unit)
        shown = f"{made:%H:%M:%S}"[: len(clock) - 1] if clock else ""
        if fraction:
            part = self._exchanged(int(fraction[1:]), 10 ** len(fraction[1:]), f"fraction {len(fraction)}")
            shown += f".{part:0{len(fraction) - 1}d}"
        return f"{made:%Y-%m-%d}{clock[:1]}{shown}{zone}"

    def _exchanged(self, index: int, count: int, purpose: str) -> int:
        """A permutation of the numbers below `count` that the key chooses: a Feistel network, walked on until it is below (Black and Rogaway
        2002, "Ciphers with arbitrary finite domains").
        """
        side = math.isqrt(count - 1) + 1
        while True:
            left, right = divmod(index, side)
            for number in range(_ROUNDS):
                digest = self._digest(f"{purpose} {count} {number} {right}")
                left, right = right, (left + int.from_bytes(digest[:16])) % side
            index = left * side + right
            if index < count:
                return index


def _range_of(number: int, digits: int, *, has_places: bool) -> tuple[int, int]:
    """The numbers that one changes places with: those of as many digits, and of the same type."""
    low = 0 if digits == 1 or has_places or number < 10 ** (digits - 1) else 10 ** (digits - 1)
    high = 10**digits
    for limit in (2**31, 2**63):
        if not has_places and low < limit < high:
            return (low, limit) if number < limit else (limit, high)
    return low, high


def _letters(digest: bytes, length: int) -> str:
    number = int.from_bytes(digest)
    letters = []
    for _ in range(length):
        number, rest = divmod(number, len(_LETTERS))
        letters.append(_LETTERS[rest])
    return "".join(letters)


Position = tuple[int, int]


def parse_positions(words: Iterable[str], trace: Trace) -> list[list[Position]]:
    """The parameters whose order is kept: `3:1` is the first of template 3; several with `+` between them (`3:1+5:2`) are of one column.
    Raises UsageError.
    """
    templates = {template.number: template for template in trace.templates}
    groups = []
    for word in words:
        group = []
        for part in word.split("+"):
            number, _, place = part.partition(":")
            if not (number.isdigit() and place.isdigit()):
                raise UsageError(
                    f"--keep-order {word}: expected TEMPLATE:PARAMETER, as 3:1, several with + between them: 3:1+5:2"
                )
            template = templates.get(int(number))
            if template is None or not 1 <= int(place) <= len(template.parameters):
                raise UsageError(
                    f"--keep-order {word}: the trace has no parameter {part}; `sensorbench traffic describe` lists templates and parameters"
                )
            group.append((int(number), int(place)))
        groups.append(group)
    return groups


def anonymise_trace(folder: Path, key: bytes, out: Path, ordered: Sequence[Sequence[Position]] = ()) -> Trace:
    """Writes a trace that has the literals of another one no more.

    Args:
        folder: of the trace.
        key: with the same key, the same literals become the same again, in other traces, too.
        out: the folder of the new trace; it is made.
        ordered: parameters whose order is kept, as groups that are compared with one another: each of template and position from 1.

    Returns:
        The new trace. Names of tables and columns stay, as do times of arrival, sessions and durations; texts of errors go, but for that there
        was one.

    Raises:
        UsageError: if there is no trace, or it cannot be read.

    """
    trace = read_trace(folder)
    dialect = _DIALECTS.get(trace.database)
    if dialect is None and trace.database not in _WITHOUT_LITERALS:
        known = sorted({*_DIALECTS, *_WITHOUT_LITERALS})
        raise UsageError(
            f"{folder}: database: the literals in statements of {trace.database} are not known; expected {', '.join(known)}"
        )
    anonymiser = Anonymiser(key)
    out.mkdir(parents=True, exist_ok=True)
    with (
        workbench_on_disk() as workbench,
        StatementWriter(out) as writer,
    ):
        ranks = _Ranks(workbench, statements_file(folder), ordered, key)
        for batch in read_statements(folder):
            writer.write(_anonymised(batch, anonymiser, ranks))
    made = trace.model_copy(
        update={
            "anonymised": True,
            "origin": [],
            "templates": [_template(template, anonymiser, dialect) for template in trace.templates],
        }
    )
    (out / TRACE_FILE).write_text(made.model_dump_json(indent=1) + "\n", encoding="utf-8")
    return made


def _template(template: Template, anonymiser: Anonymiser, dialect: Dialect | None) -> Template:
    if dialect is None:
        return template
    return template.model_copy(update={"statement": anonymiser.text(template.statement, dialect)})


def _anonymised(batch: pa.RecordBatch, anonymiser: Anonymiser, ranks: "_Ranks") -> pa.RecordBatch:
    templates = batch.column("template").to_pylist()
    written = batch.column("parameters").to_pylist()
    replaced = []
    for template, text in zip(templates, written, strict=True):
        values = json.loads(text or "[]")
        made = [
            value
            if value is None
            else rank(value)
            if (rank := ranks.of(template, place)) is not None
            else anonymiser.value(value)
            for place, value in enumerate(values, start=1)
        ]
        replaced.append(json.dumps(made, ensure_ascii=False))
    columns = {name: batch.column(name) for name in STATEMENTS.names}
    columns["parameters"] = pa.array(replaced, pa.large_string())
    # What a server says of an error repeats the values that it is of.
    columns["error"] = pa.array([None if error is None else "error" for error in batch.column("error").to_pylist()], pa.string())
    return pa.RecordBatch.from_arrays([columns[column.name] for column in STATEMENTS], schema=STATEMENTS)


class _Ranks:
    """Ranks of the literals whose order is kept, which lie in DuckDB."""

    def __init__(
        self, workbench: duckdb.DuckDBPyConnection, statements: Path, ordered: Sequence[Sequence[Position]], key: bytes
    ) -> None:
        self._workbench, self._key = workbench, key
        self._of: dict[Position, Callable[[Value], Value]] = {}
        for number, group in enumerate(ordered):
            rank = self._ranked(f"ranks_{number}", statements, group)
            self._of |= dict.fromkeys(group, rank)

    def of(self, template: int, place: int) -> Callable[[Value], Value] | None:
        """What makes ranks of the literals of a parameter; None if its order is not kept."""
        return self._of.get((template, place))

    def _ranked(self, table: str, statements: Path, group: Sequence[Position]) -> Callable[[Value], Value]:
        parts = " UNION ALL ".join(
            f"SELECT json_extract_string(parameters, '$[{place - 1}]') AS value FROM read_parquet(?) WHERE template = {template}"
            for template, place in group
        )
        self._workbench.execute(
            f"CREATE TABLE {table} AS SELECT value, row_number() OVER (ORDER BY try_cast(value AS DOUBLE) NULLS LAST, value) AS place, "
            f"try_cast(value AS DOUBLE) IS NULL AS is_text FROM (SELECT DISTINCT value FROM ({parts})) WHERE value IS NOT NULL",
            [str(statements)] * len(group),
        )
        self._workbench.execute(f"CREATE UNIQUE INDEX {table}_values ON {table} (value)")
        texts = self._workbench.execute(f"SELECT coalesce(bool_or(is_text), false) FROM {table}").fetchone()
        has_texts = bool(texts and texts[0])

        @lru_cache(_REMEMBERED)
        def rank(text: str) -> str:
            found = self._workbench.execute(f"SELECT place FROM {table} WHERE value = ?", [text]).fetchone()
            if found is None:
                raise UsageError(f"{statements}: it was changed while it was read")
            noise = int.from_bytes(hmac.new(self._key, text.encode("utf-8", "surrogatepass"), hashlib.sha256).digest()[:8])
            made = found[0] * _ORDER_GAP + noise % _ORDER_GAP
            return f"v{made:016d}" if has_texts else str(made)

        def replaced(value: Value) -> Value:
            if value is None or isinstance(value, bool):
                return value
            made = rank(value if isinstance(value, str) else json.dumps(value))
            return made if has_texts or isinstance(value, str) else int(made)

        return replaced
