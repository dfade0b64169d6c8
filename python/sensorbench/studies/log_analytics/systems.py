"""The systems, levels of indexes and sizes of the paper, and which variants play their parts."""

from functools import cache
from pathlib import Path

from sensorbench import toml_file
from sensorbench.claims import variant_name
from sensorbench.dataset.machine_log import DATASETS
from sensorbench.results import ComparisonResult
from sensorbench.studies.published import printed_rows
from sensorbench.studies.study import StudyFile

FOLDER = Path(__file__).parent
FILE = toml_file.load(FOLDER / "study.toml", StudyFile)

SIZES = tuple(DATASETS)
LEVELS = ("none", "key", "key+value")
RELATIONAL = ("DB-C", "DB-O")
CLUSTERED = ("CA-SH", "CA-SH-R3-W", "CA-SH-R3-S")
CASSANDRA = ("CA", *CLUSTERED)
REDIS = ("Redis", "Redis-SH")
RANGES = tuple(f"r{number}" for number in range(1, 8))
LOOK_UP, FETCH_RANGE, COUNT_RANGE = "look_up", "fetch_range", "count_range"


def role(system: str, level: str) -> str:
    """The role of a system at a level of indexes; both structures of Redis serve each level."""
    return system if system in REDIS else f"{system} {level}"


def variants_for(system: str, level: str) -> list[str]:
    """The variants that play a system's part at a level, the first that there is, as the study's roles name them."""
    return FILE.roles.published[role(system, level)]


def with_schema(system: str, schema: str) -> list[str]:
    """The variants that play a system's part, with another schema."""
    return [f"{name.partition('/')[0]}/{schema}" for name in FILE.roles.published[system]]


def variant_at(names: list[str], result: ComparisonResult) -> str | None:
    """The id of the first of some variants that is among those of results."""
    ids = {variant_name(variant): variant.id for variant in result.manifest.variants}
    return next((ids[name] for name in names if name in ids), None)


def size_of(result: ComparisonResult) -> str | None:
    """The size of the paper's log that results are of; None when they are of other data."""
    name = result.manifest.plan.dataset["name"]
    return next((size for size, dataset in DATASETS.items() if dataset == name), None)


_LEVEL_NAMES = {"no-index": "none", "sensor-key": "key", "sensor-key+mv": "key+value"}


@cache
def ratings() -> dict[tuple[str, str, str, str], str]:
    """The paper's own words for a system at a level of indexes, by (system, level, operation, size or `all`)."""
    return {
        (row.system, _LEVEL_NAMES[row.configuration], row.operation, row.dataset_size): row.value.lower()
        for row in printed_rows(FOLDER)
        if row.metric == "rating"
    }
