"""Parameters in the text of a configuration file. Pure: a text and parameters in, the text with their lines out."""

import re
from collections.abc import Mapping, Sequence

from sensorbench.runner.user_cluster.file import ParameterWay

_TOKENS = re.compile(r"\s*[=:]\s*|\s+|[^\s=:]+")


def with_parameters(text: str, settings: Mapping[str, str], way: ParameterWay) -> str:
    """The text with a line for each parameter, in the place of its first line from before, else at the end. All other lines stay."""
    lines = text.splitlines()
    for name, value in settings.items():
        lines = _with(lines, name, line_of(way, name, value), way)
    return "\n".join(lines) + "\n"


def line_of(way: ParameterWay, name: str, value: str) -> str:
    """The line of a parameter."""
    return way.line_of_file.replace("{name}", name).replace("{value}", value)


def _with(lines: Sequence[str], name: str, wanted: str, way: ParameterWay) -> list[str]:
    mine = _pattern(way, name)
    kept: list[str] = []
    place: int | None = None
    number = 0
    while number < len(lines):
        if mine.match(lines[number]):
            place = len(kept) if place is None else place
            number = _end_of_value(lines, number) if way.format == "yaml" else number + 1
        else:
            kept.append(lines[number])
            number += 1
    kept.insert(len(kept) if place is None else place, wanted)
    return kept


def _pattern(way: ParameterWay, name: str) -> re.Pattern[str]:
    """What a line of the parameter begins with, however much space is in it and whether or not its value is quoted."""
    before = way.line_of_file.partition("{value}")[0].replace("{name}", name).rstrip("'\"")
    # A key at the top level of YAML is not indented.
    found = "" if way.format == "yaml" else r"\s*"
    for token in _TOKENS.findall(before.lstrip()):
        if token.strip() in {"=", ":"}:
            found += rf"\s*{token.strip()}"
        else:
            found += r"\s+" if token.isspace() else re.escape(token)
    return re.compile(found)


def _end_of_value(lines: Sequence[str], number: int) -> int:
    """Where a value in YAML ends that begins in this line: it continues over lines that are indented or items of a list, and what is empty or a
    comment between those.
    """
    end = number + 1
    for place in range(number + 1, len(lines)):
        line = lines[place]
        if line[:1] in {" ", "\t", "-"} and line.strip():
            end = place + 1
        elif line.strip() and not line.startswith("#"):
            break
    return end
