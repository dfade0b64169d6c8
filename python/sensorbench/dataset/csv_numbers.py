"""How numbers are written in files: the decimal sign, and what parts groups of three digits."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Decimal = Literal[".", ","]
Thousands = Literal[",", ".", " ", "'"]
# The signs that are meant by one: typesetting has several blanks and apostrophes.
_SIGNS: dict[str, str] = {",": ",", ".": ".", " ": " \u00a0\u2009\u202f", "'": "'\u2019"}


@dataclass(frozen=True)
class NumberFormat:
    """The sign before decimals, and the one between groups of three digits if there is one."""

    decimal: Decimal = "."
    thousands: Thousands | None = None

    def __str__(self) -> str:
        groups = {" ": "blanks", "'": "apostrophes", ",": "commas", ".": "points"}
        decimal = f"a decimal {'comma' if self.decimal == ',' else 'point'}"
        return decimal if self.thousands is None else f"{decimal} and {groups[self.thousands]} between thousands"

    def sql(self, text: str) -> str:
        """The number in a cell, or null if it holds none. `text` is SQL.

        A cell that has the sign between thousands in another place is not a number: it could be the decimal sign. So it is with a
        point where decimals have a comma.
        """
        plain = f"TRY_CAST({text} AS DOUBLE)"
        if self.decimal == ",":
            plain = f"CASE WHEN NOT contains({text}, '.') THEN TRY_CAST(replace({text}, ',', '.') AS DOUBLE) END"
        if self.thousands is None:
            return plain
        signs = _SIGNS[self.thousands].replace("'", "''")
        grouped = rf"^\s*[+-]?\d{{1,3}}([{signs}]\d{{3}})+([{self.decimal}]\d*)?\s*$"
        digits = f"replace(regexp_replace({text}, '[{signs}]', '', 'g'), ',', '.')"
        without = f"NOT regexp_matches(trim({text}), '[{signs}]')"
        return f"CASE WHEN regexp_matches({text}, '{grouped}') THEN TRY_CAST({digits} AS DOUBLE) WHEN {without} THEN {plain} END"

    def as_read(self, signs: str) -> "NumberFormat":
        """The format that reads cells alike which hold none but these signs."""
        thousands = self.thousands if self.thousands and set(_SIGNS[self.thousands]) & set(signs) else None
        decimal: Decimal = "," if self.decimal == "," and ("," in signs or "." in signs) else "."
        return NumberFormat(decimal, thousands)


PLAIN = NumberFormat()
DECIMAL_COMMA = NumberFormat(",")
COMMA_GROUPS = NumberFormat(".", ",")
# All formats. Where several fit all numbers of a file, the first one counts.
FORMATS = (
    PLAIN,
    DECIMAL_COMMA,
    COMMA_GROUPS,
    NumberFormat(",", "."),
    NumberFormat(".", " "),
    NumberFormat(",", " "),
    NumberFormat(".", "'"),
    NumberFormat(",", "'"),
)
ALL_SIGNS = "".join(_SIGNS.values())


def common_formats(columns: Iterable[frozenset[NumberFormat]]) -> list[NumberFormat]:
    """The formats that fit all columns, the likeliest one first."""
    fitting = list(columns)
    return [form for form in FORMATS if all(form in column for column in fitting)]
