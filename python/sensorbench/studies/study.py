"""What a study is, and what a claim needs to be judged."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, cast

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from sensorbench import toml_file
from sensorbench.claims import Claim, Evidence, Judge, Quantity, Roles, load_claims
from sensorbench.results.summary.comparison import (
    ComparisonSummary,
    SectionColumn,
    ShownCurves,
    ShownEffect,
    ShownFront,
    ShownRequests,
    StudySection,
)
from sensorbench.results.summary.envelope import Caveat
from sensorbench.runner import Length, Workload
from sensorbench.schemas.schema_file import ParameterValue
from sensorbench.studies.pictures import Curves, Effect, Front, Requests

Kind = Literal["text", "variant", "duration_s", "bytes", "ratio", "share", "count", "whole", "number"]


class Models(toml_file.FileModel):
    """The roles of one kind of system: with a model made for the questions, and with a generic one."""

    shaped: str = Field(description="The role with a data model made for the queries.")
    generic: str = Field(description="The role with a generic data model.")


class System(toml_file.FileModel):
    """A database with variants and a size, under a name of the study's. `code` is the source's name for its own system of this
    kind. `options` are those of the target's URL.
    """

    database: str = Field(description="The database.")
    summary: str = Field(description="What the system is, in a line.")
    code: str = Field(default="", description="The paper's name of it.")
    nodes: int | None = Field(default=None, description="Number of nodes.")
    settings: dict[str, str] = Field(default={}, description="Server settings, by name.")
    options: str = Field(default="", description="Options of the URL.")


class Layout(toml_file.FileModel):
    """A schema, each of its parameters at some of its values, for all systems of its database or for those that are named.

    `label` distinguishes it from other layouts with the same schema. What `only_loads` is not asked. `concurrency` is how many operations it has in
    flight, where that is not as the workload says (several are a sweep: a variant for each), and `operations_share` the share of the workload's operations that it executes.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    schema_: str = Field(alias="schema", description="A shipped schema.")
    parameters: dict[str, list[ParameterValue]] = Field(
        default={}, description="Values of the schema's parameters that are compared."
    )
    systems: list[str] | None = Field(
        default=None, description="The systems that it is for; all of its database if none is named."
    )
    options: str = Field(default="", description="Options of the URL.")
    label: str = Field(default="", description="What distinguishes the variant in its name.")
    only_loads: bool = Field(default=False, description="Whether only loading is measured.")
    operations: list[str] | None = Field(
        default=None,
        description="The operations that it executes, where those are not all; what its schema says it cannot express need not be left out here.",
    )
    may_lose_rows: bool = Field(
        default=False, description="Whether rows that a loader does not bring in are counted, instead of being a failure."
    )
    concurrency: int | list[int] | None = Field(
        default=None, description="Requests in flight, instead of the workload's; of several, each is a variant."
    )
    operations_share: float = Field(
        default=1.0, gt=0.0, le=1.0, description="Share of the workload's operations that is measured."
    )

    def choices(self) -> list["LayoutChoice"]:
        """Each choice of parameters and concurrency."""
        parameters = [dict(zip(self.parameters, values, strict=True)) for values in product(*self.parameters.values())]
        is_swept = isinstance(self.concurrency, list)
        values_in_flight: list[int] | list[int | None] = (
            self.concurrency if isinstance(self.concurrency, list) else [self.concurrency]
        )
        found = []
        for chosen in parameters:
            for concurrency in values_in_flight:
                words = [*map(str, chosen.values()), str(concurrency) if is_swept else "", self.label]
                found.append(LayoutChoice(chosen, concurrency, "-".join(filter(None, words))))
        return found


@dataclass(frozen=True)
class LayoutChoice:
    """A layout at one choice of its parameters and its concurrency, with the label that distinguishes it from the others."""

    parameters: dict[str, ParameterValue]
    concurrency: int | None
    label: str


class OwnParameterSource(toml_file.FileModel):
    """A parameter source of the study's own, on the datasets that it is made for; elsewhere that of the operations stands."""

    datasets: list[str] = Field(description="Datasets that it is made for.")
    query: str = Field(description="SQL over the dataset.")


def _with_plain_names(schemas: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """A schema by its name alone is a layout with nothing more to say."""
    return {
        dialect: [{"schema": layout} if isinstance(layout, str) else layout for layout in layouts]
        for dialect, layouts in schemas.items()
    }


class Grid(toml_file.FileModel):
    """What is compared, on which data and how: of a study, or of a part of it."""

    datasets: list[str] = Field(min_length=1, description="The datasets that it runs on.")
    operations: str = Field(description="The operation set.")
    targets: list[str] = Field(description="The systems that are compared, if `--target` names no others.")
    max_load_time: Length | None = Field(default=None, description="A variant whose rows take longer to go in has failed.")
    encodings: bool = Field(
        default=False, description="Whether the readings of one sensor are encoded as batches, too, for what each encoding takes."
    )
    snapshots: bool = Field(
        default=False, description="Whether servers that can write a snapshot do so after loading, for its size and time."
    )
    # By dialect.
    schemas: Annotated[dict[str, list[Layout]], BeforeValidator(_with_plain_names)]
    parameters: dict[str, ParameterValue] = Field(
        default={}, description="Values of parameters that all schemas have, where layouts compare no others."
    )
    parameter_sources: dict[str, OwnParameterSource] = {}
    workload: Workload


class StudyPart(Grid):
    """A part of a study: a comparison with layouts and a workload of its own, on one dataset. What the file does not say of it is
    as the study says, key by key of its workload and parameter source by parameter source.
    """

    title: str = Field(description="Title of the part.")
    datasets: list[str] = Field(min_length=1, max_length=1, description="The dataset that it runs on.")
    follows: str | None = Field(
        default=None,
        description="The part that is the level before this one, of a study with levels. What has failed there is left out here.",
    )
    # It says nothing of one target alone.
    compares_targets: bool = Field(default=False, description="Whether targets are ranked against each other.")


class Levels(toml_file.FileModel):
    """Of a study whose parts are levels of one thing that grows until databases fail: that one does is a result. Levels follow one another, one
    server is up at a time, and a level is begun only where it fits what a budget leaves.
    """

    default_scale: float = Field(gt=0.0, le=1.0, description="Share of the datasets that is used if nothing else is said.")


class StudyFile(Grid):
    """`study.toml`. The comparison is made on each of the datasets, or, where the study has parts, for each of those."""

    title: str = Field(description="Title of the study.")
    question: str = Field(description="The question of the paper.")
    source: str = Field(description="The paper.")
    metric: str = Field(description="The figure that variants are ranked by.")
    systems: dict[str, System] = Field(default={}, description="The systems of the study, by name.")
    roles: Roles = Field(description="Which variant plays which part in the claims.")
    models: dict[str, Models] = Field(default={}, description="Pairs of roles, one for each kind of system.")
    # A variant that fails is left out and told, so that the others continue.
    continue_on_error: bool = Field(default=False, description="Whether a variant that fails leaves the others running.")
    parts: dict[str, StudyPart] = Field(default={}, description="Parts with layouts and a workload of their own.")
    levels: Levels | None = Field(default=None, description="That the parts are levels of one thing that grows.")

    @model_validator(mode="after")
    def _check_levels(self) -> "StudyFile":
        names = list(self.parts)
        for name, part in self.parts.items():
            if part.follows is not None and (self.levels is None or part.follows not in names[: names.index(name)]):
                raise ValueError(f"parts.{name}.follows {part.follows}: expected a part that stands before it, and [levels]")
        return self

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
    sources = {**study.get("parameter_sources", {}), **part.get("parameter_sources", {})}
    return {**shared, **part, "parameter_sources": sources, "workload": {**workload, **own}}


def range_text(words: list[str], order: Sequence[str]) -> str:
    """Words that follow one another in the order by the first and the last of them."""
    start = order.index(words[0])
    is_range = len(words) > 2 and words == list(order[start : start + len(words)])
    return f"{words[0]} to {words[-1]}" if is_range else ", ".join(words)


@dataclass(frozen=True)
class Column:
    """A column of a table, and what kind of values it has."""

    title: str
    kind: Kind = "text"


@dataclass(frozen=True)
class Section:
    """A section of the report that a study has to itself: a text, a table, and pictures. None is a value that is not known. `use` has the
    variants whose servers' CPU, memory and disk are drawn over time.
    """

    title: str
    text: str
    columns: list[Column]
    rows: list[list[Any]]
    front: Front | None = None
    effects: list[Effect] | None = None
    requests: list[Requests] | None = None
    use: list[str] | None = None
    curves: list[Curves] | None = None

    def described(self) -> StudySection:
        """The section as summaries have it."""
        return StudySection(
            title=self.title,
            text=self.text,
            columns=[SectionColumn(title=column.title, kind=column.kind) for column in self.columns],
            rows=self.rows,
            front=cast("ShownFront", asdict(self.front)) if self.front else None,
            effects=[cast("ShownEffect", asdict(effect)) for effect in self.effects] if self.effects is not None else None,
            requests=[cast("ShownRequests", asdict(drawn)) for drawn in self.requests] if self.requests is not None else None,
            use=self.use,
            curves=[cast("ShownCurves", asdict(curves)) for curves in self.curves] if self.curves is not None else None,
        )


# The sections that follow from the measurements and their summary.
SectionsOf = Callable[["Evidence", ComparisonSummary], list[Section]]
# What readers of a comparison's figures must know, as only the study can see.
CaveatsOf = Callable[["Evidence", ComparisonSummary], list[Caveat]]
# Those of a series: of all its comparisons, by part (or dataset).
SeriesSectionsOf = Callable[[dict[str, "Evidence"], dict[str, ComparisonSummary]], list[Section]]


@dataclass(frozen=True)
class Study:
    """A study: its grid, its claims, and how each claim is judged. Some have sections of their own."""

    name: str
    file: StudyFile
    claims: tuple[Claim, ...]
    # Who judges the claims that no rule fits, and what claims of this study alone speak of.
    judges: Mapping[str, Judge] = field(default_factory=dict)
    quantities: Mapping[str, Quantity] = field(default_factory=dict)
    sections: SectionsOf | None = None
    series_sections: SeriesSectionsOf | None = None
    caveats: CaveatsOf | None = None

    @property
    def roles(self) -> Roles:
        """Which variants play the roles that claims speak of."""
        return self.file.roles

    @property
    def metric(self) -> str:
        """The figure of latencies that is compared."""
        return self.file.metric

    @classmethod
    def load(
        cls,
        folder: Path,
        *,
        judges: Mapping[str, Judge] = MappingProxyType({}),
        quantities: Mapping[str, Quantity] = MappingProxyType({}),
        sections: SectionsOf | None = None,
        series_sections: SeriesSectionsOf | None = None,
        caveats: CaveatsOf | None = None,
    ) -> "Study":
        """The study in a folder of the package. Every part that a claim names must be there, but for those that it is blocked by the lack of,
        and every claim that no rule fits must have a judge.
        """
        claims = load_claims(folder / "claims.toml", judges)
        file = toml_file.load(folder / "study.toml", StudyFile)
        homeless = [claim.id for claim in claims if not claim.blocked_by and not set(claim.parts) <= file.parts.keys()]
        if homeless:
            raise AssertionError(f"{folder}: claims name parts that the study does not have: {homeless}")
        name = folder.name.replace("_", "-")
        return cls(name, file, claims, judges, quantities, sections, series_sections, caveats)
