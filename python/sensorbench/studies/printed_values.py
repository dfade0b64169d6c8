"""Numbers and units as papers print them."""

import re
from typing import NamedTuple

from sensorbench.results.summary.published import PublishedKind


class PrintedNumber(NamedTuple):
    """A printed number in s, bytes, per second, or as it is; None for what is not a number."""

    value: float | None
    kind: PublishedKind


_UNITS: dict[str, tuple[float, PublishedKind]] = {
    "s": (1.0, "duration_s"),
    "ms": (1e-3, "duration_s"),
    "ms/operation": (1e-3, "duration_s"),
    "us": (1e-6, "duration_s"),
    "min": (60.0, "duration_s"),
    "h": (3600.0, "duration_s"),
    "hour": (3600.0, "duration_s"),
    "h:mm:ss": (1.0, "duration_s"),
    "GB": (1e9, "bytes"),
    "MB": (1e6, "bytes"),
    "MiB": (2.0**20, "bytes"),
    "KiB": (2.0**10, "bytes"),
    "bytes": (1.0, "bytes"),
    "Mb as printed": (1e6, "bytes"),
    "MB/s": (1e6, "bytes_per_s"),
    "Mbps as printed": (1e6, "bytes_per_s"),
    "req/s": (1.0, "rate"),
    "requests/s": (1.0, "rate"),
    "operations/s": (1.0, "rate"),
    "1/s": (1.0, "rate"),
    "queries/s": (1.0, "rate"),
    "rows/s": (1.0, "rate"),
    "metrics/s": (1.0, "rate"),
    "x": (1.0, "ratio"),
    "%": (0.01, "ratio"),
}
# What the files write where the paper has no unit, or where a unit says nothing.
_NO_UNITS = {
    "-",
    "as printed",
    "as printed (no unit)",
    "fraction",
    "dimensionless",
    "count",
    "load",
    "ordinal",
    "setting",
    "level",
}
_CLOCK = re.compile(r"(\d+):(\d\d):(\d\d)")
_THOUSANDS = re.compile(r"\d{1,3}([, ]\d{3})+(\.\d*)?")
_DECIMAL_COMMA = re.compile(r"\d+,\d{1,2}")
_NUMBER = re.compile(r"[-+]?\d+(\.\d*)?")
_MINUTES = re.compile(r"(\d+) minutes (?:and )?(\d+) seconds")
_WORDS = {"one": 1.0, "seven": 7.0}


def number(text: str) -> float | None:
    """A printed number: with separators of thousands, a decimal comma, a trailing point, as h:mm:ss (in s), or as a word. None for ranges
    and for what is not a number.
    """
    text = text.strip().lstrip(">")
    if clock := _CLOCK.fullmatch(text):
        hours, minutes, seconds = map(int, clock.groups())
        return float(3600 * hours + 60 * minutes + seconds)
    if in_words := _MINUTES.fullmatch(text):
        return 60.0 * int(in_words[1]) + int(in_words[2])
    if _THOUSANDS.fullmatch(text):
        return float(re.sub("[, ]", "", text))
    if _DECIMAL_COMMA.fullmatch(text):
        return float(text.replace(",", "."))
    return float(text) if _NUMBER.fullmatch(text) else _WORDS.get(text)


def in_our_unit(text: str, unit: str, factor: float | None = None) -> PrintedNumber:
    """A printed value in our unit, by its own unit or, where that does not say it, by a factor."""
    of_unit, kind = _UNITS.get(unit, (1.0, "number"))
    value = number(text)
    return PrintedNumber(None if value is None else value * (of_unit if factor is None else factor), kind)


def shown_unit(unit: str) -> str:
    """The paper's unit as it is shown; empty if there is none."""
    return "" if unit in _NO_UNITS else unit.removesuffix(" as printed").replace("h:mm:ss", "")
