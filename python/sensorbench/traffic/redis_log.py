"""What clients sent to a Redis: the text of MONITOR, and requests in its protocol (RESP) with their times, as its append-only file has them."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from sensorbench.errors import UsageError
from sensorbench.traffic.entries import Entry, Form, Skipped
from sensorbench.traffic.redis_commands import command_template

_MONITORED = re.compile(r'\+?(\d+)\.(\d{1,6}) \[(\d+) (.+?)\] (".*")')
_WORD = re.compile(r'"((?:[^"\\]|\\.)*)"(?: |$)')
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|(.))")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "a": "\a", "b": "\b"}
# What a script sent, which is sent again when the script is.
_BY_SCRIPTS = frozenset({"lua", "script"})
_LINE_BYTES = 1 << 16
_TIME, _CLIENT = b"#TS:", b"#CLIENT:"


def is_monitored(line: str) -> bool:
    """Whether a line is of MONITOR's text."""
    return line in {"OK", "+OK"} or _MONITORED.match(line) is not None


def is_resp(line: str) -> bool:
    """Whether a line may be the first of requests with times."""
    return line.startswith((_TIME.decode(), _CLIENT.decode())) or re.fullmatch(r"\*\d+", line) is not None


def read_monitor(path: Path, skipped: Skipped) -> Iterator[Entry]:
    """The commands of MONITOR's text, as redis-cli writes it. A session whose database is not the first has a SELECT before its first command,
    also where it was sent before. Raises UsageError that names the line.
    """
    databases: dict[str, str] = {}
    # The server writes all that is not ASCII as \xHH; other tools may write the bytes themselves.
    with path.open(encoding="latin-1", newline="\n") as file:
        for number, text in enumerate(file, start=1):
            line = text.rstrip("\r\n")
            found = _MONITORED.fullmatch(line)
            words = _words(found[5]) if found else None
            if found is None or words is None:
                # Of the last line the server may have sent a part alone.
                if line and line not in {"OK", "+OK"} and text.endswith("\n"):
                    raise UsageError(
                        f'{path}:{number}: expected a line of MONITOR: 1339518083.107412 [0 127.0.0.1:60866] "SET" "key" "value"; save the '
                        "output of `redis-cli monitor`"
                    )
                skipped.entries += 1
                continue
            database, client = found[3], found[4]
            if client in _BY_SCRIPTS:
                skipped.entries += 1
                continue
            at_us = int(found[1]) * 1_000_000 + int(found[2].ljust(6, "0"))
            is_select = words[0].upper() == "SELECT" and len(words) == 2
            if databases.get(client, "0") != database and not is_select:
                yield _entry(at_us, client, ["SELECT", database])
            databases[client] = words[1] if is_select else database
            yield _entry(at_us, client, words)


def _words(text: str) -> list[str] | None:
    """The words of a command; None if it is not whole."""
    words, end = [], 0
    for found in _WORD.finditer(text):
        if found.start() != end:
            return None
        words.append(_text(_ESCAPE.sub(_unescaped, found[1]).encode("latin-1")))
        end = found.end()
    return words if words and end == len(text) else None


def _unescaped(found: "re.Match[str]") -> str:
    return chr(int(found[1], 16)) if found[1] else _ESCAPES.get(found[2], found[2])


def _text(value: bytes) -> str:
    return value.decode("utf-8", "backslashreplace")


def _entry(at_us: int, session: str, words: list[str]) -> Entry:
    statement, values, kind = command_template(words)
    return Entry(at_us, session, statement, values, form=Form(kind))


def read_resp(path: Path, skipped: Skipped) -> Iterator[Entry]:
    """The commands of a file of requests (RESP). Lines between them that begin with # say what holds from there on: `#TS:` seconds since 1970, as
    the server writes them into its append-only file (aof-timestamp-enabled), with decimals or without; `#CLIENT:` the session. Raises UsageError
    that names the byte.
    """
    at_us: int | None = None
    session = ""
    with path.open("rb") as file:
        while True:
            start = file.tell()
            line = file.readline(_LINE_BYTES)
            if not line:
                return
            if line.startswith(_TIME):
                at_us = _time_us(path, start, line)
            elif line.startswith(_CLIENT):
                session = _text(line[len(_CLIENT) :].strip())
            elif line.startswith(b"*"):
                words = _request(path, file, start, line)
                if words is None:
                    # A server that is killed, and whoever captures, may leave a part of the last one.
                    skipped.entries += 1
                    return
                if at_us is None:
                    raise UsageError(
                        f"{path}: byte {start}: expected a line #TS:SECONDS before the first request; Redis writes them with "
                        "aof-timestamp-enabled yes"
                    )
                yield _entry(at_us, session, words)
            elif line.startswith(b"#") or not line.strip():
                skipped.entries += 1
            else:
                raise UsageError(
                    f"{path}: byte {start}: {_text(line[:20])!r} is not the beginning of a request; expected *N, or a line #TS:SECONDS. A file that begins "
                    "with a snapshot (REDIS…) does not hold requests: give the .incr.aof files of the append-only folder"
                )


def _time_us(path: Path, start: int, line: bytes) -> int:
    seconds, _, fraction = line[len(_TIME) :].strip().partition(b".")
    if not seconds.isdigit() or not (fraction.isdigit() or not fraction):
        raise UsageError(f"{path}: byte {start}: {_text(line.strip())!r} is not a time; expected #TS: and seconds since 1970")
    return int(seconds) * 1_000_000 + int(fraction[:6].ljust(6, b"0"))


def _request(path: Path, file: BinaryIO, start: int, line: bytes) -> list[str] | None:
    """The words of a request, which begins with the line that was read; None if the file ends within it."""
    count = _number(path, start, line, b"*")
    words: list[str] = []
    while len(words) < count:
        start = file.tell()
        line = file.readline(_LINE_BYTES)
        if not line.endswith(b"\n"):
            return None
        length = _number(path, start, line, b"$")
        value = file.read(length + 2)
        if len(value) < length + 2:
            return None
        words.append(_text(value[:length]))
    if not words:
        raise UsageError(f"{path}: byte {start}: a request without words; expected the name of a command")
    return words


def _number(path: Path, start: int, line: bytes, mark: bytes) -> int:
    digits = line[1:].strip()
    if not line.startswith(mark) or not digits.isdigit():
        raise UsageError(f"{path}: byte {start}: expected {mark.decode()} and a number, as requests in RESP have it")
    return int(digits)
