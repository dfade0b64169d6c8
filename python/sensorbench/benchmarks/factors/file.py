"""What a study of factors varies, and under which loads: `study.toml` of such a study."""

from collections.abc import Iterable
from typing import Literal

from pydantic import Field, model_validator

from sensorbench.runner import Length
from sensorbench.toml_file import FileModel

Word = Literal["read", "write"]


class Records(FileModel):
    """The records at scale 1, and how they are chosen."""

    count: int = Field(gt=0)
    fields: int = Field(gt=0)
    field_bytes: int = Field(gt=0)
    distribution: str


class FactorLoad(FileModel):
    """A load: weights of reads and writes, at these shares of what the default reaches with them, each in a run of its own. `cold`: the
    caches are empty when each begins. `again_after`: then, so long after the data were there, the servers are restarted and the same
    rates come again, each after a restart.
    """

    title: str
    mix: dict[Word, float]
    shares: list[float] = Field(min_length=1)
    cold: bool = False
    again_after: Length | None = None


class Parameter(FileModel):
    """A parameter: what the paper calls it, what the version in use does, and its default there (at scale 1). `became` says what
    happened to it.
    """

    source: str
    setting: str
    default: str
    about: str
    became: str = ""


class Level(FileModel):
    """A configuration: what differs from the default, at scale 1. A `successor` is not of the paper: what has taken a parameter's
    place.
    """

    name: str
    set: dict[str, str] = {}
    successor: bool = False


class FactorPart(FileModel):
    """Some levels under some loads. One that `chooses` offers its best level to the study's own draft; one that is `apart` has its runs
    to itself, after all others.
    """

    title: str
    about: str
    loads: list[str] = Field(min_length=1)
    levels: list[Level] = Field(min_length=1)
    chooses: bool = False
    apart: bool = False

    def level(self, name: str) -> Level:
        """The level of this name."""
        return next(level for level in self.levels if level.name == name)


class Scaling(FileModel):
    """Which settings are sizes that grow with the data, each with the least that its default may be; and which are lengths of time, which
    grow with the time that a rate is held.
    """

    with_data: dict[str, str] = {}
    with_time: list[str] = []


class FactorsFile(FileModel):
    """`study.toml` of a study of factors. Names of loads and levels stand in claims and in results."""

    title: str
    question: str
    source: str
    database: str
    nodes: int | None = None
    options: str = ""
    # How long the paper held a rate, to which its lengths of time are in proportion.
    source_step: Length
    # The usual length here.
    step: Length
    # The cache whose hit rate is looked at, as the database's sources name it.
    cache: str
    concurrency: int = Field(gt=0)
    rounds: int = Field(gt=0)
    records: Records
    loads: dict[str, FactorLoad]
    parameters: list[Parameter]
    # What the paper's servers had without saying so, or what it takes for its parameters to count.
    besides: list[Parameter] = []
    scaling: Scaling = Scaling()
    # The part that compares the paper's draft with the default, to which the study's own is added.
    draft_part: str
    parts: dict[str, FactorPart]

    @model_validator(mode="after")
    def _check(self) -> "FactorsFile":
        unknown = {load for part in self.parts.values() for load in part.loads} - self.loads.keys()
        if unknown:
            raise ValueError(f"parts name loads that there are not: {', '.join(sorted(unknown))}")
        if self.draft_part not in self.parts:
            raise ValueError(f"draft_part {self.draft_part}: there is no such part")
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
