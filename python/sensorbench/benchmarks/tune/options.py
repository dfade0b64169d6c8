"""What can be chosen of a search for settings. That durability may be traded for speed is asked of the command line alone."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from sensorbench.benchmarks.stress import SearchOptions, WorkOptions
from sensorbench.errors import UsageError
from sensorbench.options import DEFAULT_SEED, option, parsed
from sensorbench.runner import ClusterOptions, Seconds, SecondsOrNone

RUNS = 20


def parse_start(texts: Iterable[str]) -> dict[str, str]:
    """The configuration that counts as the default: `shared_buffers=128kB`, each setting once. Raises UsageError."""
    start: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip() or key.strip() in start:
            raise UsageError(
                f"--server-setting {text}: expected a setting and its value, each setting once, for example shared_buffers=64MB"
            )
        start[key.strip()] = value.strip()
    return start


class TuneOptions(ClusterOptions, SearchOptions, WorkOptions):
    """What a server is tuned for, where it is searched and for how long."""

    target: str | None = option(
        None, "Database that the lab starts, or an embedded one; with --experiment, a target of the file."
    )
    step_duration: Seconds = option("30s", "Duration of each rate.")
    warmup: SecondsOrNone = option("10s", "Warm-up before each measurement; 0 for none.")
    seed: int = option(DEFAULT_SEED, "Seed of operations and proposals; the confirmation uses other seeds.", ge=0)
    goal: str = option(..., "p99@2000 (a percentile at a rate), capacity:p99=20ms, load, or size.")
    space: Path | None = option(None, "Your own search space (docs/how-to/tune.md); the packaged one if not given.")
    start: Annotated[dict[str, str], parsed(parse_start, of=list)] = option(
        [],
        "Server setting of the default configuration, key=value. May be given several times.",
        "--server-setting",
        several=True,
    )
    budget_runs: int | None = option(
        None, f"Maximum number of trials, without the confirmation; {RUNS} if no budget is given.", ge=3
    )
    budget: Seconds | None = option(None, "Time for the search, without the confirmation: 30m.")
    confirm: int = option(3, "Pairs of runs (default and best) for the confirmation.", ge=3)
