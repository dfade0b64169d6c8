"""Options of the command line, as cassandra-stress has them."""

import re

from sensorbench.compat.cassandra_stress.profile import INSERT, Profile
from sensorbench.errors import UsageError

_OPERATIONS = re.compile(r"(?:ops)?\(?(?P<inner>[^()]*)\)?")


def parse_operations(text: str, profile: Profile) -> dict[str, float]:
    """Weights by the names of operations, from `insert=1,simple1=2`. Raises UsageError for an operation that the profile does
    not have.
    """
    known = [INSERT, *profile.queries]
    found = _OPERATIONS.fullmatch(text.strip())
    weights: dict[str, float] = {}
    for part in (found["inner"] if found else "").split(","):
        name, sign, weight = (word.strip().lower() for word in part.partition("="))
        if not sign or not _is_weight(weight):
            raise UsageError(f"--ops {text}: expected NAME=WEIGHT,…, for example insert=1")
        if name not in known:
            raise UsageError(f"--ops {text}: the profile has no operation {name!r}; expected some of {', '.join(known)}")
        weights[name] = float(weight)
    weights = {name: weight for name, weight in weights.items() if weight > 0.0}
    if not weights:
        raise UsageError(f"--ops {text}: no operation has a weight above 0")
    return weights


def parse_rate(text: str) -> float:
    """Operations a second, with or without `/s`. Raises UsageError for what is none above 0."""
    number = text.strip().removesuffix("/s")
    if not _is_weight(number) or float(number) == 0.0:
        raise UsageError(f"--rate {text}: expected operations a second above 0")
    return float(number)


def _is_weight(text: str) -> bool:
    return re.fullmatch(r"\d+(\.\d*)?", text) is not None
