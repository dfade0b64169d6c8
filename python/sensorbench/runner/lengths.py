"""Lengths of time as people write them: 500ms, 30s, 5m, 8h, 7d."""

import re
from typing import Annotated

from pydantic import BeforeValidator

from sensorbench.options import parsed

_UNITS_S = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_LENGTH = re.compile(r"(?P<number>\d+(\.\d+)?)(?P<unit>ms|s|m|h|d)")


def seconds(text: str) -> float:
    """A length in seconds."""
    found = _LENGTH.fullmatch(text.strip())
    if not found or float(found["number"]) <= 0.0:
        raise ValueError(f"{text!r}: expected a length of time above zero such as 500ms, 30s, 5m or 8h")
    return float(found["number"]) * _UNITS_S[found["unit"]]


def _checked(value: object) -> object:
    if isinstance(value, str):
        seconds(value)
    return value


def _checked_or_none(value: object) -> object:
    if value == 0:
        return "0"
    if isinstance(value, int):
        raise ValueError('expected a length of time such as "10s", or "0" for none; it is not a number of operations any more')
    return value if value == "0" else _checked(value)


def seconds_or_none(text: str) -> float:
    """A length in seconds that may be 0."""
    return 0.0 if text == "0" else seconds(text)


Length = Annotated[str, BeforeValidator(_checked)]
# The same, or "0".
LengthOrNone = Annotated[str, BeforeValidator(_checked_or_none)]
# A length in s, which a user may write as text; and one that may be none at all.
Seconds = Annotated[float, parsed(seconds)]
SecondsOrNone = Annotated[float, parsed(seconds_or_none)]
