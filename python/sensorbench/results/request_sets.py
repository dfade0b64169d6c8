"""Series of request sets as CSV files: `time_s` (when a set began), `duration_s`, `sd_s` (the standard deviation of its duration)."""

import csv
import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sensorbench.errors import UsageError

COLUMNS = ("time_s", "duration_s", "sd_s")

Column = NDArray[np.float64]


def read_sets(path: Path) -> tuple[Column, Column, Column]:
    """The columns of a file in the order of `COLUMNS`; others are left alone. Raises UsageError with file, line and column."""
    if not path.is_file():
        raise UsageError(f"{path}: no such file; expected a CSV file with the columns {', '.join(COLUMNS)}")
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file, strict=True)
        try:
            if missing := [name for name in COLUMNS if name not in (reader.fieldnames or ())]:
                raise UsageError(f"{path}, line 1: there is no column {missing[0]}; expected {', '.join(COLUMNS)}")
            rows = [[_number(path, reader.line_num, name, row[name]) for name in COLUMNS] for row in reader]
        except UnicodeDecodeError as error:
            raise UsageError(f"{path}: not UTF-8 text ({error.reason}, byte {error.start})") from error
        except csv.Error as error:
            raise UsageError(f"{path}, line {reader.line_num}: not CSV ({error})") from error
    if not rows:
        raise UsageError(f"{path}: no sets; expected a line for each")
    times_s, durations_s, deviations_s = np.array(rows, dtype=np.float64).T
    late = np.flatnonzero(np.diff(times_s) <= 0.0)
    if len(late):
        raise UsageError(
            f"{path}, set {late[0] + 2}: began at {times_s[late[0] + 1]:g} s, the one before at {times_s[late[0]]:g} s; "
            "expected sets in the order of their begin"
        )
    return times_s, durations_s, deviations_s


def _number(path: Path, line: int, column: str, text: str | None) -> float:
    try:
        number = float(text or "")
    except ValueError:
        number = math.nan
    is_fit = math.isfinite(number) and (column == "time_s" or number >= 0.0)
    if not is_fit:
        expected = "a number of seconds" if column == "time_s" else "a number of seconds from 0 on"
        raise UsageError(f"{path}, line {line}, column {column}: {text!r} is not {expected}")
    return number
