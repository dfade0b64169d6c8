"""What can be chosen of a stress benchmark; its groups are of others', too."""

from pathlib import Path
from typing import Annotated, Literal

from sensorbench.benchmarks.stress.step import parse_rates
from sensorbench.errors import UsageError
from sensorbench.options import DEFAULT_SEED, OptionModel, option, parsed
from sensorbench.runner import MAX_CONCURRENCY, MAX_CONCURRENCY_EMBEDDED, GeneratorOptions, HostOptions, Seconds, SecondsOrNone

RECORDS = 100_000


def parse_mix(text: str) -> dict[str, float]:
    """`read=5,write=5`."""
    mix: dict[str, float] = {}
    for part in filter(None, text.split(",")):
        name, equals, weight = part.strip().partition("=")
        try:
            mix[name] = float(weight)
        except ValueError:
            equals = ""
        if not equals or name in list(mix)[:-1]:
            raise UsageError(f"--mix {text}: expected operations with weights, each once, for example read=5,write=5")
    return mix


class WorkOptions(HostOptions):
    """Which operations there are: on records, or those of an experiment file."""

    target: str | None = option(
        None, "Database name (the lab starts it), lab:NAME, or a URL; with --experiment, a target of the file."
    )
    experiment: Path | None = option(None, "Experiment file whose data, schema and operations replace the records.")
    mix: Annotated[dict[str, float], parsed(parse_mix)] = option(
        "", "Weights of operations: read, write, insert, scan, read_modify_write. Without it, those of -P and -p."
    )
    records: int | None = option(None, f"Number of records.  [default: {RECORDS}]", ge=1)
    distribution: str | None = option(None, "Distribution of keys: uniform, zipfian, latest, hotspot, sequential, exponential.")
    files: tuple[Path, ...] = option((), "YCSB properties file for records and mix.", "-P")
    properties: tuple[str, ...] = option((), "A property of YCSB, key=value.", "-p")
    seed: int = option(DEFAULT_SEED, "Seed of all operations.", ge=0)


class LoadOptions(OptionModel):
    """How operations come, in an open loop."""

    step_duration: Seconds = option("30s", "Duration of each rate.")
    ramp: SecondsOrNone = option("2s", "Time in which the rate rises to the next step; 0 for at once.")
    warmup: SecondsOrNone = option("10s", "Warm-up at the first rate; 0 to see the cold start.")
    concurrency: int | None = option(
        None, f"Maximum number of operations in flight.  [default: {MAX_CONCURRENCY}; {MAX_CONCURRENCY_EMBEDDED} embedded]", ge=1
    )
    threads: int = option(1, "Client threads, for servers.", ge=1)
    timeout: Seconds = option("10s", "Time limit of an operation.")
    arrival: Literal["poisson", "constant"] = option(
        "poisson", "Arrivals: poisson (independent clients) or constant (evenly spaced)."
    )


class SearchOptions(LoadOptions):
    """The same, where the highest rate that meets an objective is searched."""

    first: float = option(1000.0, "Rate at which the search starts.", "--from", ge=0.001)


class StressOptions(GeneratorOptions, LoadOptions, WorkOptions):
    """Rates that are held one after the other."""

    rates: Annotated[tuple[float, ...] | None, parsed(parse_rates)] = option(
        None, "FROM:TO:BY or rates with commas, in operations per second."
    )


class CapacityOptions(GeneratorOptions, SearchOptions, WorkOptions):
    """The search of the highest rate that meets an objective."""

    objective: str | None = option(None, "Percentile and limit of the response time: p99=20ms.")
    precision: float = option(3.0, "Width of the answer, in percent.", ge=0.1, le=50.0)
    confirm: int = option(3, "Trials that each bound of the answer must have.", ge=1, le=20)
    max_rate: float | None = option(None, "Highest rate to try.", ge=0.001)
