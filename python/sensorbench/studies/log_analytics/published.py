"""The cells of the source study: what it measured of which system, at which size and with which indexes, and which of that this study does.

They are those of its tables, without the notes in its text: loading, the look-up, and fetching and counting seven ranges, for eight
systems at three levels of indexes and four sizes; and besides the other way of loading Cassandra, the sizes of the loaded databases,
and the parts of Redis's memory.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sensorbench import toml_file
from sensorbench.claims import Evidence, variant_name
from sensorbench.dataset.machine_log import DATASETS
from sensorbench.results import ComparisonResult
from sensorbench.studies.published import printed_rows
from sensorbench.studies.study import FigureState, PublishedFigure, StudyFile

FOLDER = Path(__file__).parent
FILE = toml_file.load(FOLDER / "study.toml", StudyFile)

SIZES = tuple(DATASETS)
LEVELS = ("none", "key", "key+value")
RELATIONAL = ("DB-C", "DB-O")
CLUSTERED = ("CA-SH", "CA-SH-R3-W", "CA-SH-R3-S")
CASSANDRA = ("CA", *CLUSTERED)
REDIS = ("Redis", "Redis-SH")
SYSTEMS = (*RELATIONAL, *CASSANDRA, *REDIS)
RANGES = tuple(f"r{number}" for number in range(1, 8))
LOOK_UP, FETCH_RANGE, COUNT_RANGE = "look_up", "fetch_range", "count_range"
QUESTIONS = {"Q1": LOOK_UP, "Q2": FETCH_RANGE, "Q3": COUNT_RANGE}

BY_WRITES = "key, by writes"
# The source's other loader: load times of one node and four, questions of four at one size, the narrowest range left out.
LOADED_BOTH_WAYS = ("CA", "CA-SH")
BOTH_WAYS = ("4GB", "CA-SH", RANGES[1:])
# Parts of Redis's memory, and the schema that has each alone.
STRUCTURES = {"both structures": "source", "hash only": "hash_only", "sorted set only": "range_only"}

NO_KEYLESS = "Cassandra's primary key is compulsory: there is no level without a key"
NO_COMMERCIAL = "needs a commercial database, which is the user's own: --target odbc:DSN"
NO_SNAPSHOT = "the source's figure is the size of a snapshot file; here Redis keeps nothing on disk"


@dataclass(frozen=True)
class Place:
    """Where a cell is: what tells it from the others."""

    size: str
    level: str
    system: str
    operation: str
    range: str = ""

    @property
    def operations(self) -> str | None:
        """The operation that is asked, if it is about one."""
        question = QUESTIONS.get(self.operation)
        return f"{question}.{self.range}" if question and self.range else question


def role(system: str, level: str) -> str:
    """The role of a system at a level of indexes; both structures of Redis serve each level."""
    return system if system in REDIS else f"{system} {level}"


@cache
def places() -> tuple[Place, ...]:
    """All cells of the source study."""
    return (
        *(place for size in SIZES for level in LEVELS for system in SYSTEMS for place in _main_places(size, level, system)),
        *(Place(size, BY_WRITES, system, "load") for size in SIZES for system in LOADED_BOTH_WAYS),
        *(Place(BOTH_WAYS[0], BY_WRITES, BOTH_WAYS[1], question, way) for question in ("Q2", "Q3") for way in BOTH_WAYS[2]),
        *(
            Place(size, structures, system, what)
            for size in SIZES
            for structures in STRUCTURES
            for system in REDIS
            for what in ("RAM", "disk")
        ),
    )


def _main_places(size: str, level: str, system: str) -> list[Place]:
    ranges = [Place(size, level, system, question, range_) for question in ("Q2", "Q3") for range_ in RANGES]
    return [*(Place(size, level, system, what) for what in ("load", "Q1")), *ranges, Place(size, level, system, "size")]


def variants_for(place: Place) -> list[str]:
    """The variants that a cell is measured with, the first that there is, as the study's roles name them."""
    if place.level in STRUCTURES:
        return with_schema(place.system, STRUCTURES[place.level])
    of_role = f"{place.system} by writes" if place.level == BY_WRITES else role(place.system, place.level)
    return FILE.roles.published[of_role]


def with_schema(system: str, schema: str) -> list[str]:
    """The variants that play a system's part, with another schema."""
    return [f"{name.partition('/')[0]}/{schema}" for name in FILE.roles.published[system]]


def variant_at(names: list[str], result: ComparisonResult) -> str | None:
    """The id of the first of some variants that is among those of results."""
    ids = {variant_name(variant): variant.id for variant in result.manifest.variants}
    return next((ids[name] for name in names if name in ids), None)


def size_of(result: ComparisonResult) -> str | None:
    """The size of the source's log that results are of; None when they are of other data."""
    name = result.manifest.plan.dataset["name"]
    return next((size for size, dataset in DATASETS.items() if dataset == name), None)


def published_figures(result: ComparisonResult | None) -> list[PublishedFigure]:
    """All cells, as the study means to measure them; or, with results, the cells of their size, as they were measured."""
    if result is None:
        return [_figure(place, *_planned(place)) for place in places()]
    size = size_of(result)
    if size is None:
        why = f"these results are of {result.manifest.plan.dataset['name']}, not of the source's log"
        return [_figure(place, *(_impossible(place) or ("not applicable", why))) for place in places()]
    return [_figure(place, *_measured(place, result)) for place in places() if place.size == size]


def _figure(place: Place, state: FigureState, why: str) -> PublishedFigure:
    return PublishedFigure(place.size, place.level, place.system, place.operation, place.range, state, why)


def _impossible(place: Place) -> tuple[FigureState, str] | None:
    """Why this study cannot have a cell whatever is measured, if so."""
    if place.system in CASSANDRA and place.level == "none":
        return "not applicable", NO_KEYLESS
    if place.system in REDIS and place.operation in {"size", "disk"}:
        return "not applicable", NO_SNAPSHOT
    return None


def _planned(place: Place) -> tuple[FigureState, str]:
    impossible = _impossible(place)
    if impossible:
        return impossible
    variant = next((name for name in variants_for(place) if name.partition("/")[0] in FILE.targets), None)
    return ("not applicable", NO_COMMERCIAL) if variant is None else ("run", _described(place, variant))


def _described(place: Place, variant: str) -> str:
    return f"{variant}, one run for all levels" if place.system in REDIS and place.level in LEVELS else variant


def _measured(place: Place, result: ComparisonResult) -> tuple[FigureState, str]:
    impossible = _impossible(place)
    if impossible:
        return impossible
    names = variants_for(place)
    variant = variant_at(names, result)
    if variant is None:
        planned, why = _planned(place)
        return "not applicable", why if planned == "not applicable" else f"{names[0]} is not among the variants of these results"
    state, why = _loaded(variant, result) if place.operations is None else _measured_at(variant, place.operations, result)
    return state, _described(place, variant) if state == "run" and not why else why


def _loaded(variant: str, result: ComparisonResult) -> tuple[FigureState, str]:
    if variant in result.loads:
        return "run", ""
    failure = result.failures.get(variant)
    return ("failed", failure.cause) if failure else ("not applicable", f"the work ended before {variant} was loaded")


def _measured_at(variant: str, operation: str, result: ComparisonResult) -> tuple[FigureState, str]:
    """Whether a question was answered; some of its requests may have failed."""
    evidence = Evidence(result, {variant: variant}, result.manifest.plan.metric)
    counts = evidence.counts(variant, operation)
    failed = counts["error"] + counts["timeout"]
    failure = result.failures.get(variant)
    cause = evidence.first_error(variant, operation) or (failure.cause if failure else "it took longer than the time limit")
    if counts["ok"]:
        return "run", f"{variant}; {failed} of {failed + counts['ok']} requests failed: {cause}" if failed else ""
    if failed or failure:
        return "failed", cause
    return "not applicable", f"the work ended before {variant} was asked"


_LEVEL_NAMES = {"no-index": "none", "sensor-key": "key", "sensor-key+mv": "key+value"}


@cache
def ratings() -> dict[tuple[str, str, str, str], str]:
    """The paper's own words for a system at a level of indexes, by (system, level, operation, size or `all`)."""
    return {
        (row.system, _LEVEL_NAMES[row.configuration], row.operation, row.dataset_size): row.value.lower()
        for row in printed_rows(FOLDER)
        if row.metric == "rating"
    }
