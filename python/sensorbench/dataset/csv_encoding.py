"""In which encoding a file of text is, by its first bytes or by which bytes it holds; and such a file as UTF-8."""

import codecs
import contextlib
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from sensorbench.errors import UsageError

UTF_8 = "utf-8"
# Latin-1, with printable characters in the place of some controls.
WESTERN = "windows-1252"
_CHUNK = 1 << 20
# The longest marks first: that of UTF-32 begins like that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF8, UTF_8),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# This many lines that are not UTF-8 are looked at.
_MAX_LINES = 1000
# Bytes that are not text in the western encoding: controls, and those that it leaves undefined.
_NOT_WESTERN = re.compile(rb"[\x00-\x08\x0e-\x1f\x7f\x81\x8d\x8f\x90\x9d]")
_CELL = re.compile(rb"[^,;\t|\"\r\n]*[\x80-\xff][^,;\t|\"\r\n]*")
_WORD = re.compile(rb"[A-Za-z\x80-\xff]{3,}")
NAME_IT = "name the encoding with --encoding (`encoding` in a mapping file): windows-1251, cp850, iso8859-2, shift_jis …"


@dataclass(frozen=True)
class FoundEncoding:
    """The encoding of a file, and what the user should check of it."""

    name: str
    note: str = ""
    is_ascii: bool = False


@dataclass
class _Seen:
    """What the lines of a file hold: the first of those that are not UTF-8, and whether others need UTF-8."""

    first_line: int = 0
    lines: list[bytes] = field(default_factory=list)
    has_utf_8: bool = False


def find_encoding(file: Path) -> FoundEncoding:
    """The encoding of a file of text.

    Raises:
        UsageError: for a file that is not text, and for one whose encoding cannot be decided.

    """
    try:
        with file.open("rb") as source:
            start = source.read(4)
        marked = next((name for mark, name in _MARKS if start.startswith(mark)), None)
        seen = _Seen() if marked else _seen(file)
    except FileNotFoundError:
        raise UsageError(f"{file}: no such file") from None
    except OSError as error:
        raise UsageError(f"{file}: not a CSV file: {error}") from None
    if marked or not seen.lines:
        return FoundEncoding(marked or UTF_8, is_ascii=not marked and not seen.has_utf_8)
    return _western(file, seen)


def _seen(file: Path) -> _Seen:
    seen = _Seen()
    line_number = 1
    with file.open("rb") as source:
        while chunk := source.read(_CHUNK) + source.readline():
            if b"\0" in chunk:
                raise UsageError(
                    f"{file}: not a CSV file: expected text, found zero bytes; text in UTF-16 without a byte order mark is read "
                    "with --encoding utf-16-le or utf-16-be"
                )
            if not chunk.isascii():
                _look_at_lines(chunk, line_number, seen)
            line_number += chunk.count(b"\n")
    return seen


def _look_at_lines(chunk: bytes, first_number: int, seen: _Seen) -> None:
    """Adds the lines of a chunk that are not UTF-8."""
    try:
        chunk.decode(UTF_8)
        seen.has_utf_8 = True
        return
    except UnicodeDecodeError:
        pass
    for number, line in enumerate(chunk.split(b"\n"), first_number):
        if line.isascii():
            continue
        try:
            line.decode(UTF_8)
            seen.has_utf_8 = True
        except UnicodeDecodeError:
            seen.first_line = seen.first_line or number
            if len(seen.lines) < _MAX_LINES:
                seen.lines.append(line)


def _western(file: Path, seen: _Seen) -> FoundEncoding:
    """The western encoding, where the lines that are not UTF-8 look like it. Raises UsageError if they do not."""
    where = f"{file}, line {seen.first_line}"
    if seen.has_utf_8:
        raise UsageError(
            f"{where}: not UTF-8, though other lines are: the file mixes encodings; fix the line, or {NAME_IT}, which is then taken for all"
        )
    if any(_NOT_WESTERN.search(line) for line in seen.lines):
        raise UsageError(f"{where}: neither UTF-8 nor Windows-1252 (Latin-1); if it is text, {NAME_IT}")
    letters = b"".join(word for line in seen.lines for word in _WORD.findall(line) if not word.isascii())
    if 2 * sum(letter >= 0x80 for letter in letters) > len(letters):
        raise UsageError(f"{where}: not UTF-8, and it does not look like Windows-1252 (Latin-1), either; {NAME_IT}")
    found = _CELL.search(seen.lines[0])
    example = found.group().decode(WESTERN).strip() if found else ""
    return FoundEncoding(
        WESTERN,
        f"{where}: not UTF-8; the file is read as Windows-1252 (Latin-1): {example!r}; --encoding says otherwise",
    )


def is_utf_8(encoding: str) -> bool:
    """Whether files in this encoding are read as they are."""
    return codecs.lookup(encoding).name in {UTF_8, "utf-8-sig", "ascii"}


def check_encoding(encoding: str) -> str:
    """The name of an encoding as it was given. Raises ValueError if there is none of this name, or it is none of text."""
    try:
        codecs.lookup(encoding)
        "".encode(encoding)
    except LookupError:
        raise ValueError(
            f"there is no encoding {encoding!r}; expected a name such as utf-8, windows-1252, utf-16 or iso8859-15"
        ) from None
    return encoding


@contextlib.contextmanager
def as_utf_8(file: Path, encoding: str) -> Iterator[Path]:
    """A file as UTF-8: itself, or a copy that is removed afterwards.

    Raises:
        UsageError: if a byte is none of the encoding.

    """
    if is_utf_8(encoding):
        yield file
        return
    with tempfile.TemporaryDirectory(prefix="sensorbench-csv-") as folder:
        copy = Path(folder) / file.name
        with _text_of(file, encoding) as source, copy.open("w", encoding=UTF_8, newline="") as out:
            while text := source.read(_CHUNK):
                out.write(text)
        yield copy


def first_line(file: Path, encoding: str) -> str:
    """The first line of a file, without a byte order mark.

    Raises:
        UsageError: if there is no such file, or a byte is none of the encoding.

    """
    with _text_of(file, encoding) as source:
        return source.readline()


@contextlib.contextmanager
def _text_of(file: Path, encoding: str) -> Iterator[TextIO]:
    """A file, opened as text; errors say what the user can do."""
    try:
        with file.open(encoding=encoding, newline="") as source:
            if source.read(1) != "\ufeff":
                source.seek(0)
            yield source
    except FileNotFoundError:
        raise UsageError(f"{file}: no such file") from None
    except UnicodeError as error:
        where = f": {error.reason} at byte {error.start}" if isinstance(error, UnicodeDecodeError) else f": {error}"
        raise UsageError(f"{file}: not a CSV file in the encoding {encoding}{where}; {NAME_IT}") from None
    except OSError as error:
        raise UsageError(f"{file}: not a CSV file: {error}") from None
