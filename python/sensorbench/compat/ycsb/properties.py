"""Java properties files, as YCSB reads them (java.util.Properties.load): keys and values as text, the last of equal keys counts."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sensorbench.errors import UsageError

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
# A key ends at the first of these that is not escaped; spaces around the sign that parts it from the value belong to neither.
_PARTED = re.compile(r"(?P<key>(?:\\.|[^\\:=\s])*)\s*[:=]?\s*(?P<value>.*)", re.DOTALL)
_ESCAPED = re.compile(r"\\(u(?P<code>[0-9A-Fa-f]{4})|(?P<character>.))", re.DOTALL)


@dataclass(frozen=True)
class Property:
    """A value, and where it was said: a file and its line, or an option of the command line."""

    value: str
    place: str


Properties = dict[str, Property]


def read_properties(path: Path) -> Properties:
    """What a file says. Raises UsageError when it cannot be read."""
    try:
        text = path.read_text(encoding="latin-1")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from None
    return {key: Property(value, f"{path}, line {line}") for line, key, value in _parsed(text)}


def read_all_properties(paths: Sequence[Path]) -> Properties:
    """What several files say; the later one counts. Raises UsageError when one cannot be read."""
    return {key: said for path in paths for key, said in read_properties(path).items()}


def overridden(properties: Properties, options: Sequence[str]) -> Properties:
    """The same with what `-p key=value` says. Raises UsageError for an option of another form."""
    found = dict(properties)
    for option in options:
        key, sign, value = option.partition("=")
        if not sign or not key.strip():
            raise UsageError(f"-p {option}: expected key=value")
        found[key.strip()] = Property(value.strip(), f"-p {key.strip()}")
    return found


def _parsed(text: str) -> Iterator[tuple[int, str, str]]:
    """Line, key and value of each property."""
    for number, line in _logical_lines(text):
        match = _PARTED.fullmatch(line)
        if match is not None:
            yield number, _unescaped(match["key"]), _unescaped(match["value"])


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines without comments and blank ones; one that ends with an odd number of backslashes continues in the next, whose blanks at the
    beginning do not count.
    """
    begun, first = "", 0
    for number, natural in enumerate(re.split(r"\r\n|\n|\r", text), 1):
        line = natural.lstrip(" \t\f")
        if not begun and (not line or line[0] in "#!"):
            continue
        first = first if begun else number
        begun += line
        if (len(begun) - len(begun.rstrip("\\"))) % 2:
            begun = begun[:-1]
            continue
        yield first, begun
        begun = ""
    if begun:
        yield first, begun


def _unescaped(text: str) -> str:
    def character(match: re.Match[str]) -> str:
        return chr(int(match["code"], 16)) if match["code"] else _ESCAPES.get(match["character"], match["character"])

    return _ESCAPED.sub(character, text)
