"""What a study of factors varies, and under which loads: `study.toml` of such a study."""

from collections.abc import Iterable
from typing import Literal

from pydantic import Field, model_validator

from sensorbench.results.summary.factors import CurveFigure
from sensorbench.runner import Length
from sensorbench.toml_file import FileModel

Word = Literal["read", "write"]


class Records(FileModel):
    """The records at scale 1, and how they are chosen."""

    count: int = Field(gt=0, description="Number of records at scale 1.")
    fields: int = Field(gt=0, description="Fields of a record.")
    field_bytes: int = Field(gt=0, description="Bytes of a field.")
    distribution: str = Field(description="How records are chosen.")


class FactorLoad(FileModel):
    """A load: weights of reads and writes, at these shares of what the default reaches with them, each in a run of its own. `cold`: the
    caches are empty when each begins. `measures_adding`: how the records are added is measured, too. `again_after`: then, this long after the data were there, the servers are restarted and the same
    rates come again, each after a restart.
    """

    title: str = Field(description="Title in reports.")
    mix: dict[Word, float] = Field(description="Weights of reads and writes.")
    shares: list[float] = Field(min_length=1, description="Rates, as shares of what the default configuration reaches.")
    cold: bool = Field(default=False, description="Whether the caches are empty when each rate begins.")
    measures_adding: bool = Field(
        default=False, description="Whether adding the records is measured, too: then each measurement adds them again."
    )
    again_after: Length | None = Field(
        default=None, description="After this time the servers are restarted, and the same rates come again."
    )


class Parameter(FileModel):
    """A parameter: what the paper calls it, what the version in use does, and its default there (at scale 1). `became` says what
    happened to it.
    """

    source: str = Field(description="The paper's name of the parameter.")
    setting: str = Field(description="Its name in the version in use.")
    default: str = Field(description="Its default there, at scale 1.")
    about: str = Field(description="What it does.")
    became: str = Field(default="", description="What happened to it since.")


class Level(FileModel):
    """A configuration: what differs from the default, at scale 1. A `successor` is not of the paper: what has taken a parameter's
    place.
    """

    name: str = Field(description="Name of the level.")
    set: dict[str, str] = Field(default={}, description="Server settings that differ from the default, at scale 1.")
    successor: bool = Field(
        default=False, description="Whether the level is not of the paper, but what took a parameter's place."
    )


class FactorPart(FileModel):
    """Some levels under some loads. One that `chooses` offers its best level to the study's own draft; one that is `apart` has its runs
    to itself, after all others.
    """

    title: str = Field(description="Title in reports.")
    about: str = Field(description="The question of the part.")
    loads: list[str] = Field(min_length=1, description="The loads that it runs.")
    levels: list[Level] = Field(min_length=1, description="The configurations that it compares.")
    chooses: bool = Field(default=False, description="Whether its best level goes into the study's own draft.")
    apart: bool = Field(default=False, description="Whether its runs come after all others.")

    def level(self, name: str) -> Level:
        """The level of this name."""
        return next(level for level in self.levels if level.name == name)


class Scaling(FileModel):
    """Which settings are sizes that grow with the data, each with the least that its default may be; and which are lengths of time, which
    grow with the time that a rate is held.
    """

    with_data: dict[str, str] = Field(
        default={}, description="Settings that are sizes and grow with the data, each with the smallest default."
    )
    with_time: list[str] = Field(default=[], description="Settings that are times and grow with the time that a rate is held.")


class Curves(FileModel):
    """Figures of some parts that the report draws over the load average, as the paper does, beside the same over the rate."""

    title: str = Field(description="Title of the section of the report.")
    about: str = Field(description="What the paper draws, and what is to be known of it.")
    parts: list[str] = Field(min_length=1, description="The parts whose levels are drawn.")
    figures: list[CurveFigure] = Field(min_length=1, description="The figures that are drawn.")
    printed_load: str = Field(description="The figure as which `published.toml` reads the paper's load.")
    printed_unit: str = Field(default="", description="What is to be said of the unit of the paper's load.")


class FactorsFile(FileModel):
    """`study.toml` of a study of factors. Names of loads and levels stand in claims and in results."""

    title: str = Field(description="Title of the study.")
    question: str = Field(description="The question of the paper.")
    source: str = Field(description="The paper.")
    database: str = Field(description="The database.")
    nodes: int | None = Field(default=None, description="Number of nodes.")
    options: str = Field(default="", description="Options of the URL.")
    # How long the paper held a rate, to which its lengths of time are in proportion.
    source_step: Length = Field(description="How long the paper held a rate.")
    # The usual length here.
    step: Length = Field(description="How long a rate is held here.")
    # The cache whose hit rate is looked at, as the database's sources name it.
    cache: str = Field(description="The cache whose hit rate is reported.")
    concurrency: int = Field(gt=0, description="The concurrency limit.")
    rounds: int = Field(gt=0, description="Repetitions of each configuration.")
    looks: list[int] = Field(
        default=[],
        description="With a budget, claims are judged after these many rounds, and configurations of those that are decided are measured no more.",
    )
    records: Records = Field(description="The records.")
    loads: dict[str, FactorLoad] = Field(description="The loads, by name.")
    parameters: list[Parameter] = Field(description="The parameters of the paper.")
    # What the paper's servers had without saying so, or what it takes for its parameters to count.
    besides: list[Parameter] = Field(default=[], description="Parameters that the paper's servers had without saying so.")
    scaling: Scaling = Field(default=Scaling(), description="Which settings grow with data or time.")
    # Configurations that differ in these alone start with the same files.
    not_on_disk: list[str] = Field(default=[], description="Settings that do not change how records are stored on disk.")
    # The part that compares the paper's draft with the default, to which the study's own is added.
    draft_part: str = Field(description="The part that compares the paper's configuration with the default.")
    parts: dict[str, FactorPart] = Field(description="The parts, by name.")
    curves: Curves | None = Field(default=None, description="What the report draws over the load average.")

    @model_validator(mode="after")
    def _check(self) -> "FactorsFile":
        if self.looks != sorted(set(self.looks)) or any(look < 1 for look in self.looks):
            raise ValueError(f"looks {self.looks}: expected numbers of rounds, each larger than the one before")
        unknown = {load for part in self.parts.values() for load in part.loads} - self.loads.keys()
        if unknown:
            raise ValueError(f"parts name loads that there are not: {', '.join(sorted(unknown))}")
        if self.draft_part not in self.parts:
            raise ValueError(f"draft_part {self.draft_part}: there is no such part")
        drawn = self.curves.parts if self.curves else []
        if lacking := [name for name in drawn if name not in self.parts]:
            raise ValueError(f"curves.parts {lacking[0]}: there is no such part")
        for name, part in self.parts.items():
            if len({level.name for level in part.levels}) < len(part.levels):
                raise ValueError(f"parts.{name}: two levels have the same name")
        return self

    @property
    def default(self) -> dict[str, str]:
        """The default configuration at scale 1."""
        return {parameter.setting: parameter.default for parameter in self._all_parameters()}

    def default_level(self, part: str) -> Level | None:
        """The level of a part that is the default, if one is."""
        default = self.default
        return next((level for level in self.parts[part].levels if {**default, **level.set} == default), None)

    def _all_parameters(self) -> Iterable[Parameter]:
        return (*self.besides, *self.parameters)
