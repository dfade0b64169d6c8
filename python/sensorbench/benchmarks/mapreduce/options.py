"""What can be chosen of the MapReduce study."""

from typing import Annotated

from sensorbench.errors import UsageError
from sensorbench.options import option, parsed
from sensorbench.runner import FILE_URL, SERVER_URL, StudyRunOptions


def parse_workers(text: str) -> tuple[int, ...]:
    """Numbers of workers, as `1,2,4`. Raises UsageError."""
    parts = text.split(",")
    if not all(part.strip().isdigit() and int(part) > 0 for part in parts):
        raise UsageError(f"--workers {text}: expected whole numbers above 0 with commas between, for example 1,2")
    return tuple(sorted({int(part) for part in parts}))


class MapReduceOptions(StudyRunOptions):
    """What a user may change; the study decides where nothing is said."""

    targets: tuple[str, ...] = option(
        (),
        f"A system of the study, a database's name, or a URL ({FILE_URL}, {SERVER_URL}). May be given several times.",
        "--target",
    )
    dataset: str | None = option(None, "A dataset's name, or the folder of an imported one.")
    spark: str | None = option(None, "Spark's master, spark://HOST:PORT, lab:NAME or local[N]; without it the lab starts one.")
    workers: Annotated[tuple[int, ...], parsed(parse_workers)] = option((), "Numbers of Spark's workers, for example 1,2.")
    words: tuple[str, ...] = option(
        (), "A word that is looked for. May be given several times; chosen by frequency if not given.", "--word"
    )
