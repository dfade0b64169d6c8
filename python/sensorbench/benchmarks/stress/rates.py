"""Rates as people write them: 5000:30000:5000, or 5000,8000,12000."""

from sensorbench.errors import UsageError

EXPECTED = (
    "expected FROM:TO:STEP, for example 5000:30000:5000, or rates separated by commas; all in operations a second, above zero"
)
MOST_STEPS = 1000


def parse_rates(text: str) -> list[float]:
    """The rates, in operations a second, in the order in which they are held. Raises UsageError."""
    parts = text.split(":")
    if len(parts) not in (1, 3):
        raise _wrong(text)
    if len(parts) == 1:
        return [_rate(one, text) for one in text.split(",")]
    first, last, step = (_rate(part, text) for part in parts)
    count = int(abs(last - first) / step + 1e-9) + 1
    if count > MOST_STEPS:
        raise UsageError(f"--rates {text}: that are {count:,} steps; expected at most {MOST_STEPS:,}")
    return [first + number * step * (1.0 if last >= first else -1.0) for number in range(count)]


def _rate(text: str, whole: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        raise _wrong(whole) from None
    if not 0.0 < rate < float("inf"):
        raise _wrong(whole)
    return rate


def _wrong(text: str) -> UsageError:
    return UsageError(f"--rates {text}: {EXPECTED}")
