"""What a study is, and what a claim needs to be judged."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from functools import cache, partial
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from sensorbench import toml_file
from sensorbench.analysis.intervals import CONFIDENCE, LEAST_RUNS, Interval, contrast_interval, spread_over_runs
from sensorbench.analysis.sample import Floats, Sample
from sensorbench.analysis.verdicts import EQUIVALENCE_MARGIN, judge
from sensorbench.benchmarks.comparison import sample_of
from sensorbench.results import ComparisonResult, RunResult, SettingManifest
from sensorbench.results.latencies import logged_latencies
from sensorbench.results.manifest import MEASURE, PhaseFigures
from sensorbench.results.server_use import server_use
from sensorbench.results.summary.comparison import ComparisonSummary, SectionColumn, StudySection
from sensorbench.runner import Workload
from sensorbench.schemas.schema_file import ParameterValue
from sensorbench.studies.pictures import Effect, Front

Word = Literal["holds", "does not hold", "no difference seen", "inconclusive", "not tested here", "not tested at this scale"]
CellState = Literal["run", "not applicable", "failed"]
Kind = Literal["text", "setting", "duration_s", "bytes", "ratio", "count"]

NOT_MEASURED = "something that it needs was not measured"

# "About as much" means within this factor of what was published: machines, versions and scales differ.
ABOUT = 3.0
# "Near 1" means within this share of it.
NEAR = 0.25


class Roles(toml_file.FileModel):
    """Which setting plays which part in the claims, as system/schema or system/schema/label (a system is a database where the study
    names none); the first that was measured does.
    """

    published: dict[str, list[str]]
    stand_in: dict[str, list[str]] = {}


class Models(toml_file.FileModel):
    """The roles of one kind of system: with a model made for the questions, and with a generic one."""

    shaped: str
    generic: str


class System(toml_file.FileModel):
    """A database with settings and a size, under a name of the study's. `code` is the source's name for its own system of this
    kind. `options` are those of the target's URL.
    """

    database: str
    summary: str
    code: str = ""
    nodes: int | None = None
    settings: dict[str, str] = {}
    options: str = ""


class Layout(toml_file.FileModel):
    """A schema, each of its parameters at some of its values, for all systems of its database or for those that are named.

    `label` tells it from other layouts with the same schema. What `only_loads` is not asked. `in_flight` is how many operations it has in
    flight, where that is not as the workload says, and `operations_share` the share of the workload's operations that it executes.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    schema_: str = Field(alias="schema")
    parameters: dict[str, list[ParameterValue]] = {}
    systems: list[str] | None = None
    options: str = ""
    label: str = ""
    only_loads: bool = False
    in_flight: int | None = None
    operations_share: float = Field(default=1.0, gt=0.0, le=1.0)

    def variants(self) -> list[tuple[dict[str, ParameterValue], str]]:
        """Each choice of parameters, with the label that tells it from the others."""
        choices = [dict(zip(self.parameters, values, strict=True)) for values in product(*self.parameters.values())]
        return [(choice, "-".join(filter(None, [*map(str, choice.values()), self.label]))) for choice in choices]


class OwnDraw(toml_file.FileModel):
    """A draw of the study's own, on the datasets that it is made for; elsewhere that of the operations stands."""

    datasets: list[str]
    query: str


def _with_plain_names(schemas: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """A schema by its name alone is a layout with nothing more to say."""
    return {
        dialect: [{"schema": one} if isinstance(one, str) else one for one in layouts] for dialect, layouts in schemas.items()
    }


class Grid(toml_file.FileModel):
    """What is compared, on which data and how: of a study, or of a part of it."""

    datasets: list[str] = Field(min_length=1)
    targets: list[str]
    # By dialect.
    schemas: Annotated[dict[str, list[Layout]], BeforeValidator(_with_plain_names)]
    draws: dict[str, OwnDraw] = {}
    workload: Workload


class StudyPart(Grid):
    """A part of a study: a comparison with layouts and a workload of its own, on one dataset. What the file does not say of it is
    as the study says, key by key of its workload and draw by draw.
    """

    title: str
    datasets: list[str] = Field(min_length=1, max_length=1)
    # It says nothing of one target alone.
    compares_targets: bool = False


class StudyFile(Grid):
    """`study.toml`. The comparison is made on each of the datasets, or, where the study has parts, for each of those."""

    title: str
    question: str
    source: str
    operations: str
    metric: str
    systems: dict[str, System] = {}
    roles: Roles
    models: dict[str, Models] = {}
    # A setting that fails is left out and told, so that the others go on.
    goes_on: bool = False
    parts: dict[str, StudyPart] = {}

    @model_validator(mode="before")
    @classmethod
    def _with_whole_parts(cls, content: dict[str, Any]) -> dict[str, Any]:
        parts = {name: _laid_over(content, part) for name, part in content.get("parts", {}).items()}
        return {**content, "parts": parts}


# Either of them ends a run, so that a part which names one has no use for the other one's limit.
_ENDS = {"operations", "duration"}


def _laid_over(study: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    """What a file says of a part, laid over what it says of the study."""
    shared = {key: study[key] for key in Grid.model_fields if key in study}
    own = part.get("workload", {})
    hidden = _ENDS if own.keys() & _ENDS else set()
    workload = {key: value for key, value in study.get("workload", {}).items() if key not in hidden}
    draws = {**study.get("draws", {}), **part.get("draws", {})}
    return {**shared, **part, "draws": draws, "workload": {**workload, **own}}


@dataclass(frozen=True)
class Judgement:
    """What the measurements say of a claim."""

    word: Word
    measured: dict[str, Any] | None
    reason: str


class Claim(toml_file.FileModel):
    """A published finding in checkable form."""

    id: str
    text: str
    form: str
    published: str
    # Settings that must have been measured, by the names of the study's roles.
    requires: list[str] = []
    # The parts of the study that it needs, in each of which those settings must have been measured. A claim that names none is
    # about each comparison by itself.
    parts: list[str] = []
    # What else it needs and is not here, in words; such a claim is not tested.
    lacks: str | None = None
    least_scale: float = 0.0
    # Why it needs that scale.
    scale_matters: str = ""


class ClaimsFile(toml_file.FileModel):
    """`claims.toml`."""

    claim: list[Claim]


def load_claims(file: Path, judges: Iterable[str]) -> tuple[Claim, ...]:
    """The claims of a file, each of which lacks something or has a judge, by its id."""
    found = toml_file.load(file, ClaimsFile).claim
    if {claim.id for claim in found if not claim.lacks} != set(judges):
        raise AssertionError(f"{file}: claims and judges do not fit")
    return tuple(found)


@dataclass(frozen=True)
class Cell:
    """One figure of the source study, and whether there is one of this study: `why` says where it is from, or why there is none.
    `range` is empty where the operation has none.
    """

    size: str
    level: str
    system: str
    operation: str
    range: str
    state: CellState
    why: str


def grouped(cells: Sequence[Cell]) -> list[tuple[str, ...]]:
    """Cells that are equal but for one word as one row, system by system: system, levels, sizes, operations with their ranges, state
    and why.
    """
    ranges, sizes, systems = ([*dict.fromkeys(getattr(cell, of) for cell in cells)] for of in ("range", "size", "system"))
    rows: list[tuple[str, ...]] = [astuple(cell) for cell in cells]
    rows = _joined([(system, level, size, *rest) for size, level, system, *rest in rows], 4, partial(stretch, order=ranges))
    rows = [(*place, f"{operation} {among}".strip(), state, why) for *place, operation, among, state, why in rows]
    rows = _joined(_joined(rows, 3, ", ".join), 2, partial(stretch, order=sizes))
    return sorted(_joined(rows, 1, ", ".join), key=lambda row: systems.index(row[0]))


def _joined(rows: Sequence[tuple[str, ...]], place: int, join: Callable[[list[str]], str]) -> list[tuple[str, ...]]:
    """Rows that are equal but for the word at one place as one row, with those words joined."""
    words: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        words.setdefault((*row[:place], *row[place + 1 :]), []).append(row[place])
    return [(*row[:place], join(of_row), *row[place:]) for row, of_row in words.items()]


def stretch(words: list[str], order: Sequence[str]) -> str:
    """Words that follow one another in the order by the first and the last of them."""
    start = order.index(words[0])
    isstretch = len(words) > 2 and words == list(order[start : start + len(words)])
    return f"{words[0]} to {words[-1]}" if isstretch else ", ".join(words)


@dataclass(frozen=True)
class Column:
    """A column of a table, and what kind of values it has."""

    title: str
    kind: Kind = "text"


@dataclass(frozen=True)
class Section:
    """A section of the report that a study has to itself: a text, a table, and pictures. None is a value that is not known."""

    title: str
    text: str
    columns: list[Column]
    rows: list[list[Any]]
    front: Front | None = None
    effects: list[Effect] | None = None

    def described(self) -> StudySection:
        """The section as summaries have it."""
        return StudySection(
            title=self.title,
            text=self.text,
            columns=[SectionColumn(title=column.title, kind=column.kind) for column in self.columns],
            rows=self.rows,
            front=asdict(self.front) if self.front else None,
            effects=[asdict(effect) for effect in self.effects] if self.effects is not None else None,
        )


Judge = Callable[["Evidence"], Judgement]
# The cells of the source study, or those that are of the size of results.
CellsOf = Callable[[ComparisonResult | None], list[Cell]]
# The sections that follow from the measurements and their summary.
SectionsOf = Callable[["Evidence", ComparisonSummary], list[Section]]
# Those of a series: of all its comparisons, by part (or dataset).
SeriesSectionsOf = Callable[[dict[str, "Evidence"], dict[str, ComparisonSummary]], list[Section]]


@dataclass(frozen=True)
class Study:
    """A study: its grid, its claims, and how each claim is judged. Some say which cells of their source they measure, and have
    sections of their own.
    """

    name: str
    file: StudyFile
    claims: tuple[Claim, ...]
    judges: dict[str, Judge]
    cells: CellsOf | None = None
    sections: SectionsOf | None = None
    series_sections: SeriesSectionsOf | None = None

    @classmethod
    def load(
        cls,
        folder: Path,
        judges: dict[str, Judge],
        *,
        cells: CellsOf | None = None,
        sections: SectionsOf | None = None,
        series_sections: SeriesSectionsOf | None = None,
    ) -> "Study":
        """The study in a folder of the package. Every claim that lacks nothing must have a judge, and every part that one names
        must be there.
        """
        claims = toml_file.load(folder / "claims.toml", ClaimsFile).claim
        unjudged = [claim.id for claim in claims if not claim.lacks and claim.id not in judges]
        if unjudged or not set(judges) <= {claim.id for claim in claims}:
            raise AssertionError(f"{folder}: claims and judges do not fit: {unjudged}")
        file = toml_file.load(folder / "study.toml", StudyFile)
        homeless = [claim.id for claim in claims if not set(claim.parts) <= file.parts.keys()]
        if homeless:
            raise AssertionError(f"{folder}: claims name parts that the study does not have: {homeless}")
        return cls(folder.name.replace("_", "-"), file, tuple(claims), judges, cells, sections, series_sections)


def setting_name(setting: SettingManifest) -> str:
    """How roles name a setting: system/schema or system/schema/label."""
    return "/".join(filter(None, [setting.system or setting.database, setting.schema_name, setting.label]))


class Evidence:
    """What was measured in one comparison, by the roles that claims speak of. `parts` is the evidence of all parts of the study
    that were measured, this one's among it.
    """

    def __init__(
        self,
        result: ComparisonResult,
        roles: dict[str, str],
        metric: str,
        parts: Mapping[str, "Evidence"] = MappingProxyType({}),
    ) -> None:
        self.result = result
        self.roles = roles
        self.metric = metric
        self._parts = parts
        self._sample = cache(self._load_sample)

    def part(self, name: str) -> "Evidence":
        """The evidence of a part of the study: one of those that the claim names, without which it is not judged."""
        if name == self.result.manifest.plan.part:
            return self
        if name not in self._parts:
            raise AssertionError(f"the claim speaks of the part {name}, which it does not name")
        return self._parts[name]

    def runs(self, role: str) -> list[RunResult]:
        """The complete runs of a role."""
        return [run for run in self.result.runs[self.roles[role]] if run.state == "complete"]

    def sample(self, role: str, operation: str) -> Sample | None:
        """The latencies of an operation."""
        return self._sample(role, operation)

    def _load_sample(self, role: str, operation: str) -> Sample | None:
        return sample_of(self.runs(role), operation)

    def loaded_s(self, role: str) -> float | None:
        """The time until everything was loaded and settled."""
        return self.result.loaded_s(self.roles[role])

    def size_bytes(self, role: str) -> float | None:
        """What the loaded data take, on disk or in memory."""
        return self.result.size_bytes(self.roles[role])

    def largest_partition_bytes(self, role: str) -> int | None:
        """The largest partition of any table, as the server tells."""
        return self.result.largest_partition_bytes(self.roles[role])

    def access(self, role: str, operation: str) -> str | None:
        """The access path that the database plans for an operation, where it says: an index, or a scan."""
        access = self.result.plans.get(self.roles[role], {}).get(operation, {}).get("access")
        return str(access) if access else None

    def counts(self, role: str, operation: str) -> dict[str, int]:
        """How many operations of one kind ended how."""
        counts = {"ok": 0, "error": 0, "timeout": 0, "cancelled": 0}
        for phase in self._measured_phases(role):
            for outcome, count in phase.operations.get(operation, {}).get("counts", {}).items():
                counts[outcome] += count
        return counts

    def first_error(self, role: str, operation: str) -> str | None:
        """The message of an operation of one kind that failed."""
        errors = [
            error for run in self.result.runs[self.roles[role]] if run.manifest.whole for error in run.manifest.whole.errors
        ]
        of_kind = (error for error in errors if error["operation"] == operation and error["kind"] != "cancelled")
        return next((str(error["first_message"]) for error in of_kind), None)

    def _measured_phases(self, role: str) -> list[PhaseFigures]:
        """What the engine told of the measured phase of each run, also of those that failed."""
        wholes = [run.manifest.whole for run in self.result.runs[self.roles[role]] if run.manifest.whole]
        return [phase for whole in wholes for phase in whole.phases if phase.name == MEASURE]

    def server_means(self, role: str, what: str) -> list[float]:
        """Of each run, the mean of what the servers used: `processors` or `megabytes`."""
        uses = [server_use(self.result, run, self.roles[role]) for run in self.runs(role)]
        return [float(np.mean([row[what] for row in use])) for use in uses if use]

    def contrast(self, terms: Sequence[tuple[str, str, float]]) -> Interval | None:
        """The product of figure(role, operation) ** weight; None when something was not measured."""
        samples = [(self.sample(role, operation), weight) for role, operation, weight in terms]
        if any(sample is None for sample, _ in samples):
            return None
        return contrast_interval([(sample, weight) for sample, weight in samples if sample is not None], self.metric)

    def contrast_of_parts(self, terms: Sequence[tuple[str, str, str, float]]) -> Interval | None:
        """The same over several parts: (part, role, operation, weight). They were measured one after the other, so that nothing
        that they share cancels.
        """
        samples = [(self.part(part).sample(role, operation), weight) for part, role, operation, weight in terms]
        known = [(sample, weight) for sample, weight in samples if sample is not None]
        return contrast_interval(known, self.metric, paired=False) if len(known) == len(terms) else None

    def latencies(self, run: RunResult, operations: Sequence[str]) -> list[Floats]:
        """Latencies of each kind of operation in one run, in order of time."""
        return [logged_latencies(run, operation)[1] for operation in operations]


def greater_than_one(interval: Interval | None) -> Judgement:
    """Judges "this ratio is above 1"."""
    if interval is None:
        return _not_measured()
    verdict = judge(interval)
    words: dict[str, Word] = {
        "slower": "holds",
        "faster": "does not hold",
        "equivalent": "no difference seen",
        "no difference seen": "no difference seen",
        "inconclusive": "inconclusive",
    }
    return Judgement(words[verdict.word], _shown(interval), verdict.reason)


def at_least_one(interval: Interval | None) -> Judgement:
    """Judges "this ratio is 1 or above"."""
    judgement = greater_than_one(interval)
    is_equivalent = interval is not None and judge(interval).word == "equivalent"
    return Judgement("holds", judgement.measured, judgement.reason) if is_equivalent else judgement


def near_one(interval: Interval | None) -> Judgement:
    """Judges "this ratio is near 1"."""
    return _within(interval, 1.0 / (1.0 + NEAR), 1.0 + NEAR, f"near 1 means within {NEAR:.0%}")


def near_or_above_one(interval: Interval | None) -> Judgement:
    """Judges "this ratio is near 1 or above"."""
    return _within(interval, 1.0 / (1.0 + NEAR), math.inf, f"near 1 means within {NEAR:.0%}")


def at_most(interval: Interval | None, limit: float, rule: str) -> Judgement:
    """Judges "this figure is not above a limit"."""
    return _within(interval, 0.0, limit, rule)


def about(interval: Interval | None, published: float) -> Judgement:
    """Judges "this ratio is about as large as published"."""
    return _within(interval, published / ABOUT, published * ABOUT, f"about means within a factor of {ABOUT:g} of {published:g}")


def _within(interval: Interval | None, low: float, high: float, rule: str) -> Judgement:
    if interval is None:
        return _not_measured()
    if interval.low is None or interval.high is None or interval.runs < LEAST_RUNS:
        return Judgement("inconclusive", _shown(interval), f"{interval.runs} runs and no interval between runs; {rule}")
    if low <= interval.low and interval.high <= high:
        return Judgement("holds", _shown(interval), rule)
    if interval.high < low or interval.low > high:
        return Judgement("does not hold", _shown(interval), rule)
    return Judgement("inconclusive", _shown(interval), f"the interval reaches over the limit; {rule}")


def single_ratio(ratio: float | None, what: str) -> Judgement:
    """Judges "this ratio is above 1" of something that was measured once and has no interval."""
    if ratio is None or not math.isfinite(ratio):
        return _not_measured()
    measured = {"value": ratio, "low": None, "high": None}
    if abs(ratio - 1.0) <= EQUIVALENCE_MARGIN:
        return Judgement("no difference seen", measured, f"{what}; measured once, no interval")
    return Judgement("holds" if ratio > 1.0 else "does not hold", measured, f"{what}; measured once, no interval")


def ratio_over_runs(ratios: Sequence[float]) -> Interval | None:
    """The interval of a ratio that each run gives once."""
    known = [ratio for ratio in ratios if ratio > 0.0 and math.isfinite(ratio)]
    return spread_over_runs(np.array(known), CONFIDENCE) if known else None


def untested_for(reason: str) -> Judgement:
    """What is said of something that was not tested, and why."""
    return Judgement("not tested here", None, reason)


def _not_measured() -> Judgement:
    return untested_for(NOT_MEASURED)


def _shown(interval: Interval) -> dict[str, Any]:
    return {
        key: value if not isinstance(value, float) or math.isfinite(value) else None for key, value in asdict(interval).items()
    }
