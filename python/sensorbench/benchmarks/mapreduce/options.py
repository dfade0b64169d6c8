"""What can be chosen of the MapReduce study."""

from typing import Annotated

from sensorbench.errors import UsageError
from sensorbench.options import option, parsed
from sensorbench.runner import FILE_URL, SERVER_URL, HostOptions, RepetitionOptions, Seconds


def parse_nodes(text: str) -> tuple[int, ...]:
    """Numbers of nodes, as `1,2,3`. Raises UsageError."""
    return _numbers("--nodes", text)


def parse_workers(text: str) -> tuple[int, ...]:
    """Numbers of workers, as `1,2,4`. Raises UsageError."""
    return _numbers("--workers", text)


def _numbers(name: str, text: str) -> tuple[int, ...]:
    parts = text.split(",")
    if not all(part.strip().isdigit() and int(part) > 0 for part in parts):
        raise UsageError(f"{name} {text}: expected whole numbers above 0 with commas between, for example 1,2")
    return tuple(sorted({int(part) for part in parts}))


class MapReduceOptions(RepetitionOptions, HostOptions):
    """What a user may change; the study decides where nothing is said."""

    scale: float | None = option(None, "Share of the dataset to use. If not given, --budget chooses it, else all is used.")
    budget: Seconds | None = option(
        None,
        "Choose scale and executions so that the study ends in this time: 60m. What does not fit is left for --resume.",
    )
    targets: tuple[str, ...] = option(
        (),
        f"A system of the study, a database's name, or a URL ({FILE_URL}, {SERVER_URL}). May be given several times.",
        "--target",
    )
    dataset: str | None = option(None, "Name of a dataset, or folder of an imported one.")
    spark: str | None = option(None, "Spark's master, spark://HOST:PORT, lab:NAME or local[N]; without it the lab starts one.")
    nodes: Annotated[tuple[int, ...], parsed(parse_nodes)] = option(
        (), "Cluster sizes: nodes of each database that can grow, and as many Spark workers, for example 1,2,3."
    )
    workers: Annotated[tuple[int, ...], parsed(parse_workers)] = option(
        (), "Numbers of Spark workers for databases of fixed size, instead of --nodes; for example 1,2."
    )
    words: tuple[str, ...] = option(
        (), "Word to search for. May be given several times; chosen by frequency if not given.", "--word"
    )
