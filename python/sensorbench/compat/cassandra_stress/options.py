"""What can be chosen of a run of a profile, as cassandra-stress has it."""

import re
from typing import Annotated

from sensorbench.compat.cassandra_stress.profile import INSERT, Profile
from sensorbench.compat.cassandra_stress.visits import Partitions, parse_partitions
from sensorbench.errors import UsageError
from sensorbench.options import DEFAULT_SEED, option, parsed
from sensorbench.runner import SERVER_URL, GeneratorOptions, Seconds

CONSISTENCIES = ("any", "one", "two", "three", "quorum", "all", "local_one", "local_quorum", "each_quorum")
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
    """Operations per second, with or without `/s`. Raises UsageError for what is none above 0."""
    number = text.strip().removesuffix("/s")
    if not _is_weight(number) or float(number) == 0.0:
        raise UsageError(f"--rate {text}: expected operations per second above 0")
    return float(number)


def _is_weight(text: str) -> bool:
    return re.fullmatch(r"\d+(\.\d*)?", text) is not None


def _population(text: str) -> Partitions:
    try:
        return parse_partitions(text)
    except ValueError as error:
        raise ValueError(f"{text}: expected FIRST..LAST or a distribution ({error})") from None


def _consistency(text: str) -> str:
    if text.lower() not in CONSISTENCIES:
        raise ValueError(f"{text}: expected one of {', '.join(CONSISTENCIES)}")
    return text.lower()


class CassandraStressOptions(GeneratorOptions):
    """What is done with a profile, on a target. `population` is None for the partitions that are usual."""

    target: str = option(..., f"lab:NAME or a URL: {SERVER_URL}.")
    ops: str = option("insert=1", "Operations and their weights: insert=1,QUERY=2.")
    operations: int | None = option(None, "How many operations.", "--operations", "-n", ge=1)
    duration: Seconds | None = option(None, "How long: 30s, 5m.")
    population: Annotated[Partitions, parsed(_population)] | None = option(
        None,
        "Partitions: 1..N one after the other, or a distribution: 'gaussian(1..N)'. If not given, insertions alone write to as many as "
        "they need, and other operations are gaussian over those.",
    )
    rate: Annotated[float, parsed(parse_rate)] | None = option(
        None, "Open loop at this rate: operations per second, whether or not earlier ones are answered."
    )
    concurrency: int = option(64, "Operations in flight; with --rate, the maximum.", ge=1)
    consistency: Annotated[str, parsed(_consistency)] = option("local_one", "Consistency level.", "--cl")
    seed: int = option(DEFAULT_SEED, "Seed of all rows and operations.")
