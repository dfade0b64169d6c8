"""Lengths of time, rates and sizes as people write them: 90d, 1/min, 2TB."""

import re

from sensorbench.errors import UsageError

_SECONDS = {
    "s": 1.0,
    "m": 60.0,
    "min": 60.0,
    "h": 3_600.0,
    "d": 86_400.0,
    "w": 604_800.0,
    "y": 31_557_600.0,
}
_BYTES = {"MB": 1e6, "GB": 1e9, "TB": 1e12}
_AMOUNT = re.compile(r"(?P<number>\d+(\.\d+)?) ?(?P<unit>[a-zA-Z]*)")
_RATE = re.compile(r"(?P<number>\d+(\.\d+)?)( ?/ ?(?P<unit>[a-z]+))?")


def length_s(text: str, option: str) -> float:
    """`90d`, `12h`: seconds. Raises UsageError that names the option."""
    return _amount(text, _SECONDS, f"{option} {text}: expected a length of time such as 30m, 12h, 90d, 4w or 2y")


def bytes_of(text: str, option: str) -> float:
    """`2TB`, `64GB`: bytes. Raises UsageError that names the option."""
    return _amount(text, _BYTES, f"{option} {text}: expected a size such as 500MB, 64GB or 2TB")


def rate_per_s(text: str, option: str) -> float:
    """`10`, `10/s`, `1/min`, `4/h`: how many a second. Raises UsageError that names the option."""
    found = _RATE.fullmatch(text.strip())
    unit = (found["unit"] or "s") if found else ""
    if not found or unit not in _SECONDS or float(found["number"]) <= 0.0:
        raise UsageError(f"{option} {text}: expected a rate per second, such as 10 or 0.5, or 1/min, 4/h, 24/d")
    return float(found["number"]) / _SECONDS[unit]


def _amount(text: str, units: dict[str, float], expected: str) -> float:
    found = _AMOUNT.fullmatch(text.strip())
    if not found or found["unit"] not in units or float(found["number"]) <= 0.0:
        raise UsageError(expected)
    return float(found["number"]) * units[found["unit"]]
