"""PostgreSQL's logs: csvlog, jsonlog, and the text that `traffic record` has the server write."""

import csv
import json
import re
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache
from pathlib import Path

from sensorbench.errors import UsageError
from sensorbench.traffic.entries import Entry, Skipped, Value

# What stands before each line that a server writes while it is recorded: time, session, state.
RECORD_PREFIX = "sensorbench %m %c %e "
_LINE = re.compile(r"sensorbench (\S+ \S+ \S+) (\S+) (\S+) ([A-Z]+\d?):  (.*)", re.DOTALL)
_CSV_COLUMNS = 23
_TIME, _SESSION, _SEVERITY, _MESSAGE, _DETAIL, _CONTEXT, _QUERY = 0, 5, 11, 13, 14, 18, 19
_LONGEST_FIELD = 1 << 30
_LOGGED = re.compile(
    r"(?:duration: (?P<duration>[\d.]+) ms)?\s*(?:(?P<how>statement|parse|bind|execute fetch from|execute)(?: [^:]*?)?: (?P<statement>.*))?",
    re.DOTALL,
)
_PARAMETERS = re.compile(r"\$(\d+) = (NULL|'(?:[^']|'')*'(?:\.\.\.)?)")
_OFFSET = re.compile(r"([+-])(\d\d)(?::?(\d\d))?")
_FAILURES = {"ERROR", "FATAL", "PANIC"}


@dataclass(slots=True)
class _Line:
    """An entry of a log, in whatever form it was written."""

    number: int
    at_us: int
    session: str
    severity: str
    message: str
    detail: str = ""
    context: str = ""
    query: str = ""


@dataclass(slots=True)
class _Bind:
    at_us: int
    duration_s: float


class _Sessions:
    """Makes statements of entries. A statement is known when it begins (log_statement), when it ends (log_min_duration_statement), or when it
    fails, and in the extended protocol its parts have entries of their own.
    """

    def __init__(self, path: Path, skipped: Skipped) -> None:
        self._path, self._skipped = path, skipped
        self._begun: dict[Hashable, Entry] = {}
        self._bound: dict[Hashable, _Bind] = {}

    def entries(self, line: _Line) -> Iterator[Entry]:
        """The statements that are known whole with an entry."""
        if line.severity in _FAILURES:
            yield from self._failed(line)
            return
        found = _LOGGED.fullmatch(line.message) if line.severity == "LOG" else None
        if found is None or not (found["duration"] or found["how"]):
            self._skipped.entries += 1
            return
        duration_s = None if found["duration"] is None else float(found["duration"]) / 1000
        start_us = line.at_us - round((duration_s or 0.0) * 1e6)
        how = found["how"]
        if how is None:
            # The end of a statement whose beginning was logged; of a part of the extended protocol where nothing was.
            if (begun := self._begun.pop(line.session, None)) is not None:
                begun.duration_s, begun.at_us = duration_s, min(begun.at_us, start_us)
                yield begun
            else:
                self._skipped.entries += 1
            return
        if how in {"parse", "execute fetch from"}:
            # What is fetched is of a statement that was there before.
            return
        if how == "bind":
            self._bound[line.session] = _Bind(start_us, duration_s or 0.0)
            return
        yield from self._flushed(line.session)
        bound = self._bound.pop(line.session, None) if how.startswith("execute") else None
        # What is bound and executed is one statement, which begins with the one and takes as long as both.
        began_us, took_s = (start_us, duration_s) if bound is None else (bound.at_us, (duration_s or 0.0) + bound.duration_s)
        entry = Entry(began_us, line.session, found["statement"] or "", self._values(line), took_s)
        if duration_s is None:
            self._begun[line.session] = entry
        else:
            yield entry

    def rest(self) -> Iterator[Entry]:
        """Statements whose end was not logged."""
        yield from self._begun.values()

    def _flushed(self, session: Hashable) -> Iterator[Entry]:
        if (begun := self._begun.pop(session, None)) is not None:
            yield begun

    def _failed(self, line: _Line) -> Iterator[Entry]:
        bound = self._bound.pop(line.session, None)
        if line.session in self._begun:
            yield replace(self._begun.pop(line.session), error=line.message)
        elif line.query:
            at_us = bound.at_us if bound else line.at_us
            yield Entry(at_us, line.session, line.query, self._values(line), error=line.message)
        else:
            self._skipped.entries += 1

    def _values(self, line: _Line) -> tuple[Value, ...]:
        """The values that were bound, which stand in the detail, and of statements that failed in the context."""
        text = line.detail if "arameters: " in line.detail[:20] else line.context if "parameters: " in line.context else ""
        values: list[Value] = []
        for number, written in _PARAMETERS.findall(text):
            if written.endswith("..."):
                raise UsageError(
                    f"{self._path}:{line.number}: the server cut the value of ${number} short; expected whole values: set "
                    "log_parameter_max_length to -1 and record again"
                )
            values.append(None if written == "NULL" else written[1:-1].replace("''", "'"))
        return tuple(values)


def _statements(path: Path, skipped: Skipped, lines: Iterator[_Line]) -> Iterator[Entry]:
    sessions = _Sessions(path, skipped)
    for line in lines:
        yield from sessions.entries(line)
    yield from sessions.rest()


def read_csvlog(path: Path, skipped: Skipped) -> Iterator[Entry]:
    """The statements of a csvlog."""
    return _statements(path, skipped, _csv_lines(path, skipped))


def read_jsonlog(path: Path, skipped: Skipped) -> Iterator[Entry]:
    """The statements of a jsonlog."""
    return _statements(path, skipped, _json_lines(path, skipped))


def read_recorded(path: Path, skipped: Skipped) -> Iterator[Entry]:
    """The statements of a log with `RECORD_PREFIX`."""
    return _statements(path, skipped, _text_lines(path, skipped))


def _csv_lines(path: Path, skipped: Skipped) -> Iterator[_Line]:
    limit = csv.field_size_limit(_LONGEST_FIELD)
    try:
        with path.open(encoding="utf-8", errors="replace", newline="") as file:
            rows = csv.reader(file)
            short: int | None = None
            for row in rows:
                if short is not None:
                    raise UsageError(f"{path}:{short}: expected at least {_CSV_COLUMNS} columns of a csvlog")
                if len(row) < _CSV_COLUMNS:
                    # The last may be one that the server has not written whole.
                    short = rows.line_num
                    skipped.entries += 1
                    continue
                at_us = _time_us(row[_TIME], path, rows.line_num)
                yield _Line(
                    rows.line_num, at_us, row[_SESSION], row[_SEVERITY], row[_MESSAGE], row[_DETAIL], row[_CONTEXT], row[_QUERY]
                )
    except csv.Error as error:
        raise UsageError(f"{path}:{rows.line_num}: {error}; expected a csvlog") from None
    finally:
        csv.field_size_limit(limit)


def _json_lines(path: Path, skipped: Skipped) -> Iterator[_Line]:
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, text in enumerate(file, start=1):
            try:
                said = json.loads(text)
                at_us = _time_us(said["timestamp"], path, number)
                session, severity = said["session_id"], said["error_severity"]
            except (ValueError, KeyError, TypeError):
                if not text.endswith("\n"):
                    # What the server has not written whole.
                    skipped.entries += 1
                    return
                raise UsageError(f"{path}:{number}: expected a JSON object of a jsonlog, with timestamp and session_id") from None
            query = said.get("statement", "")
            yield _Line(
                number, at_us, session, severity, said.get("message", ""), said.get("detail", ""), said.get("context", ""), query
            )


def _text_lines(path: Path, skipped: Skipped) -> Iterator[_Line]:
    """Detail, context and statement have lines of their own after that of the message."""
    current: _Line | None = None
    for number, text in _records(path):
        found = _LINE.fullmatch(text)
        if found is None:
            skipped.entries += 1
            continue
        time, session, _, label, said = found.groups()
        if current is not None and label in {"DETAIL", "CONTEXT", "STATEMENT", "HINT", "QUERY", "LOCATION"}:
            if label == "DETAIL":
                current.detail = said
            elif label == "CONTEXT":
                current.context = said
            elif label == "STATEMENT":
                current.query = said
            continue
        if current is not None:
            yield current
        current = _Line(number, _time_us(time, path, number), session, label, said)
    if current is not None:
        yield current


def _records(path: Path) -> Iterator[tuple[int, str]]:
    """Entries with the number of their first line; the server begins all other lines of an entry with a tab."""
    parts: list[str] = []
    first = 1
    with path.open(encoding="utf-8", errors="replace", newline="\n") as file:
        for number, line in enumerate(file, start=1):
            if line.startswith("\t") and parts:
                parts.append(line[1:])
                continue
            if parts:
                yield first, "".join(parts).removesuffix("\n")
            parts, first = [line], number
    if parts:
        yield first, "".join(parts).removesuffix("\n")


def _time_us(text: str, path: Path, line: int) -> int:
    """A time as PostgreSQL writes it: 2026-11-26 21:20:01.123 UTC."""
    zone = text[23:].strip()
    its_zone = _zone(zone)
    try:
        at_us = _second_us(text[:19], its_zone or UTC) + _MS[text[19:23]]
    except (ValueError, KeyError):
        raise UsageError(f"{path}:{line}: {text[:40]!r} is not a time; expected 2026-11-26 21:20:01.123 UTC") from None
    if its_zone is None:
        raise UsageError(
            f"{path}:{line}: time zone {zone or 'none'} is ambiguous; expected UTC: set log_timezone to UTC and record again"
        )
    return at_us


# A log has many lines of the same second.
_MS = {f".{ms:03d}": ms * 1000 for ms in range(1000)}


@lru_cache(64)
def _second_us(text: str, zone: timezone) -> int:
    """A time without a fraction. Raises ValueError."""
    return round(datetime.strptime(text, "%Y-%m-%d %H:%M:%S").replace(tzinfo=zone).timestamp()) * 1_000_000


@lru_cache(64)
def _zone(name: str) -> timezone | None:
    """A time zone as PostgreSQL writes it; None for one that may be several."""
    if name in {"UTC", "GMT", "Z"}:
        return UTC
    offset = _OFFSET.fullmatch(name)
    if not offset:
        return None
    shift = timedelta(hours=int(offset[2]), minutes=int(offset[3] or 0))
    return timezone(shift if offset[1] == "+" else -shift)
