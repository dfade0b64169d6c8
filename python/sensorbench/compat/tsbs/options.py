"""What can be chosen of a load and of queries, by the names of TSBS's own options."""

from datetime import datetime
from typing import Annotated, Literal

from sensorbench.dataset.tsbs import START, parse_time
from sensorbench.options import DEFAULT_SEED, OptionModel, option, parsed
from sensorbench.runner import FILE_URL, SERVER_URL, Rate, Seconds

# As TSBS's scripts have them.
DEFAULT_END = START.replace(day=4)
BATCH_ROWS = 10_000
QUERIES = 1_000


def _time(text: str) -> datetime:
    time = parse_time(text)
    if time is None:
        raise ValueError(f"{text}: expected a time such as 2016-01-01T00:00:00Z")
    return time


def _names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


class TsbsOptions(OptionModel):
    """The data and the targets. They must be the same in a load and in the queries that follow."""

    targets: tuple[str, ...] = option(
        ..., f"lab:NAME or a URL: {SERVER_URL}, {FILE_URL}. May be given several times.", "--target"
    )
    use_case: Literal["cpu-only", "cpu-single", "devops", "iot"] = option(
        "cpu-only", "The use case of TSBS: cpu-only, cpu-single, devops, iot."
    )
    scale: int = option(100, "Number of hosts or trucks.", ge=1, le=2**31 - 1)
    timestamp_start: Annotated[datetime, parsed(_time)] = option(f"{START:%Y-%m-%dT%H:%M:%SZ}", "Start of the data.")
    timestamp_end: Annotated[datetime, parsed(_time)] = option(
        f"{DEFAULT_END:%Y-%m-%dT%H:%M:%SZ}", "End of the data (exclusive)."
    )
    log_interval: Seconds = option("10s", "Interval between rows of a host or truck: 10s, 1m.")
    seed: int = option(DEFAULT_SEED, "Seed of the data and all queries.", ge=0)
    schema_name: str = option("wide", "Schema at each target: wide, narrow.", "--schema")


class TsbsLoadOptions(TsbsOptions):
    """How data are loaded."""

    workers: int = option(1, "Number of parallel batches; 1 for an embedded database.", ge=1)
    batch_size: int = option(BATCH_ROWS, "Maximum number of rows per batch.", ge=1)
    reporting_period: Seconds = option("10s", "Interval at which progress is recorded.")


class TsbsRunOptions(TsbsOptions):
    """Which queries are executed, and how."""

    queries: Annotated[tuple[str, ...], parsed(_names)] = option(
        "",
        "Kinds of queries by TSBS's names: lastpoint,high-cpu-1. If not given, those of TSBS's scripts, and the calibrated ones.",
    )
    max_queries: int = option(QUERIES, "Queries of each kind.", ge=1)
    max_rps: Rate | None = option(None, "Open loop at this rate: queries per second, whether or not earlier ones are answered.")
    workers: int = option(1, "Queries in flight; with --max-rps, the maximum.", ge=1)
    timeout: Seconds = option("60s", "Time limit of a query.")
