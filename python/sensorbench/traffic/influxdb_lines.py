"""Points that clients wrote by InfluxDB's line protocol: each is a statement, and those of one request have the time of its arrival."""

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from sensorbench.errors import UsageError
from sensorbench.traffic.entries import Entry, Form, Skipped, Value
from sensorbench.traffic.http_requests import read_requests

_PATHS = ("/write", "/api/v2/write", "/api/v3/write_lp")
# Measurement and tags, fields, and perhaps a time, with blanks between them.
_LINE = re.compile(r'((?:[^ \\]|\\.|\\$)+) +((?:[^ "]|"(?:[^"\\]|\\.)*"|(?<=\\) )+)(?: +(-?\d+))? *')
_PART = re.compile(r"(?:[^,\\]|\\.|\\$)+")
_FIELD = re.compile(r'((?:[^,=\\ ]|\\.)+)=("(?:[^"\\]|\\.)*"|[^,"]+)(?:,|$)')
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_INTEGER = re.compile(r"(-?\d+)([iu])")
_BOOLEANS: dict[str, Value] = {
    **dict.fromkeys(("t", "T", "true", "True", "TRUE"), True),
    **dict.fromkeys(("f", "F", "false", "False", "FALSE"), False),
}
# What `precision` says of the times of a request, in nanoseconds.
_UNITS_NS = {
    **{"n": 1, "ns": 1, "nanosecond": 1, "auto": 1},
    **{"u": 1_000, "us": 1_000, "µ": 1_000, "microsecond": 1_000},
    **{"ms": 1_000_000, "millisecond": 1_000_000},
    **{"s": 1_000_000_000, "second": 1_000_000_000},
    **{"m": 60_000_000_000, "h": 3_600_000_000_000},
}
_LONGEST_SHOWN = 80


def is_line_protocol(path: str) -> bool:
    """Whether requests to a path have line protocol."""
    return path.partition("?")[0] in _PATHS


@dataclass(frozen=True)
class _Point:
    """A point as a statement: its template, its values, its measurement, and its time (ns since 1970) where it has one."""

    statement: str
    values: tuple[Value, ...]
    measurement: str
    time_ns: int | None


def is_point(line: str) -> bool:
    """Whether a line may be of a file of line protocol: a point with its time."""
    found = _LINE.fullmatch(line.strip())
    return found is not None and found[3] is not None and _FIELD.match(found[2]) is not None


def read_influxdb_lines(path: Path, skipped: Skipped) -> Iterator[Entry]:
    """The points of captured requests. Times become nanoseconds. Raises UsageError that names the line of the file, and of the body."""
    for request in read_requests(path, skipped):
        unit_ns = _UNITS_NS.get(request.options.get("precision", "ns"))
        if unit_ns is None:
            raise UsageError(f"{request.where}: path: precision={request.options['precision']} is none of {', '.join(_UNITS_NS)}")
        body = request.body.decode("utf-8", "backslashreplace")
        for number, line in _lines(body.split("\n")):
            point = _point(f"{request.where}: line {number} of the body", line, unit_ns)
            yield Entry(
                request.at_us,
                request.session,
                point.statement,
                point.values,
                request.duration_s,
                error=request.error,
                form=Form("write", (point.measurement,)),
            )


def read_influxdb_points(path: Path, skipped: Skipped) -> Iterator[Entry]:
    """The points of a file of line protocol, in nanoseconds, as agents write it and servers export it. Each arrives at its own time. Raises
    UsageError that names the line.
    """
    del skipped
    with path.open(encoding="utf-8", errors="backslashreplace", newline="\n") as file:
        for number, line in _lines(text.removesuffix("\n") for text in file):
            point = _point(f"{path}:{number}", line, 1)
            if point.time_ns is None:
                raise UsageError(
                    f"{path}:{number}: the point has no time, at which it would arrive; expected nanoseconds at its end"
                )
            yield Entry(point.time_ns // 1000, "", point.statement, point.values, form=Form("write", (point.measurement,)))


def _lines(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """The points of lines, each with the number of its first line, without remarks: a text within quotes may have line breaks of its own."""
    parts: list[str] = []
    for number, line in enumerate(lines, start=1):
        if not parts and (not line.strip() or line.lstrip().startswith("#")):
            continue
        parts.append(line)
        # A tag may have a single quote of its own.
        if _quotes(parts) % 2 == 0 or (len(parts) == 1 and _LINE.fullmatch(line.strip(" \r"))):
            yield number - len(parts) + 1, "\n".join(parts).strip(" \r")
            parts = []
    if parts:
        yield number - len(parts) + 1, "\n".join(parts)


def _quotes(parts: list[str]) -> int:
    return sum(part.count('"') - part.count('\\"') for part in parts)


def _point(where: str, line: str, unit_ns: int) -> _Point:
    found = _LINE.fullmatch(line)
    if found is None:
        raise _error(where, line, "expected MEASUREMENT[,TAG=VALUE…] FIELD=VALUE[,…] [TIME]")
    measurement, *tags = _PART.findall(found[1])
    values: list[Value] = []
    parts = [measurement]
    for tag in tags:
        name, mark, value = _key_and_value(tag)
        if not mark:
            raise _error(where, line, f"expected a tag TAG=VALUE in the place of {tag!r}")
        values.append(_unescaped(value))
        parts.append(f",{name}=${len(values)}")
    parts.append(" ")
    parts.append(",".join(_fields(where, line, found[2], values)))
    time_ns = None
    if found[3] is not None:
        time_ns = int(found[3]) * unit_ns
        values.append(time_ns)
        parts.append(f" ${len(values)}")
    return _Point("".join(parts), tuple(values), _unescaped(measurement), time_ns)


def _fields(where: str, line: str, text: str, values: list[Value]) -> Iterator[str]:
    """Each field as a template says it: with the mark of its type, without which it would be of another one."""
    end = 0
    for field in _FIELD.finditer(text):
        if field.start() != end:
            break
        end = field.end()
        name, value = field[1], field[2]
        if value.startswith('"'):
            values.append(value[1:-1].replace('\\"', '"').replace("\\\\", "\\"))
            yield f'{name}="${len(values)}"'
        elif integer := _INTEGER.fullmatch(value):
            values.append(int(integer[1]))
            yield f"{name}=${len(values)}{integer[2]}"
        elif value in _BOOLEANS:
            values.append(_BOOLEANS[value])
            yield f"{name}=${len(values)}"
        elif _NUMBER.fullmatch(value) and math.isfinite(float(value)):
            values.append(float(value))
            yield f"{name}=${len(values)}"
        else:
            raise _error(where, line, f"field {name}: {value!r} is not a number, 1i, 1u, true, false or text in quotes")
    if end != len(text) or not text or text.endswith(","):
        raise _error(where, line, f"expected FIELD=VALUE, and commas between fields, at {text[end : end + 20]!r}")


def _key_and_value(tag: str) -> tuple[str, str, str]:
    """The name of a tag and its value, which the first equals sign without a backslash parts."""
    found = re.fullmatch(r"((?:[^=\\]|\\.)+)(=)(.+)", tag, re.DOTALL)
    return (found[1], found[2], found[3]) if found else (tag, "", "")


def _unescaped(text: str) -> str:
    return re.sub(r"\\([,= ])", r"\1", text)


def _error(where: str, line: str, expected: str) -> UsageError:
    shown = line if len(line) <= _LONGEST_SHOWN else f"{line[:_LONGEST_SHOWN]}…"
    return UsageError(f"{where}: {expected}: {shown}")
