"""Search spaces: which settings of a server may take which values. Files; those of some databases come with the package."""

from pathlib import Path

from pydantic import Field, StrictFloat, StrictInt, StrictStr, model_validator

from sensorbench.errors import UsageError
from sensorbench.results.planned import SearchSpace
from sensorbench.toml_file import FileModel, load

SPACES = Path(__file__).parent / "spaces"

Choice = str | int | float
# Settings by name, as they stand in the server's own file. What is not named is left to the server.
Configuration = dict[str, str]


class ServerSetting(FileModel):
    """A setting of the server: either one of `values`, or a number from `low` to `high`, by `step` or by factors (`log`),
    with a unit after it. One that trades `durability` for speed, whose first value is the safest, is left out of a search unless
    that is allowed.
    """

    about: str = Field(min_length=1, description="What the server setting does.")
    values: list[StrictStr | StrictInt | StrictFloat] | None = Field(
        default=None,
        min_length=1,
        description="The values that are tried; instead of `low` and `high`. With `durability`, the safest is first.",
    )
    low: StrictInt | StrictFloat | None = Field(default=None, description="The smallest value that is tried.")
    high: StrictInt | StrictFloat | None = Field(default=None, description="The largest value that is tried.")
    step: StrictInt | StrictFloat | None = Field(default=None, description="Distance between values.")
    log: bool = Field(default=False, description="Whether values are tried by factors.")
    line: str = Field(default="", description="How it is written where it is not a line of that file, with {key} or {value}.")
    unit: str = Field(default="", description="Unit after the number in the server's file: `MB`.")
    durability: bool = Field(
        default=False, description="Whether the setting trades durability for speed. It is left out without `--allow-durability`."
    )

    @model_validator(mode="after")
    def _check(self) -> "ServerSetting":
        if self.durability and self.values is None:
            raise ValueError("durability needs values, the safest first")
        if self.line and "{value}" not in self.line:
            raise ValueError("line must have {value}")
        if self.values is not None:
            if (self.low, self.high, self.step, self.log) != (None, None, None, False):
                raise ValueError("expected either values, or low and high")
            return self
        if self.low is None or self.high is None:
            raise ValueError("expected values, or low and high")
        if not self.low < self.high:
            raise ValueError("low must be below high")
        if self.log and (self.step is not None or self.low <= 0):
            raise ValueError("log needs numbers above zero, and no step")
        if self.step is not None and not 0 < self.step <= self.high - self.low:
            raise ValueError("step must be above zero and not above high - low")
        return self

    @property
    def choices(self) -> list[Choice]:
        """The values, each once; of numbers the two ends."""
        return list(dict.fromkeys(self.values or [bound for bound in (self.low, self.high) if bound is not None]))

    @property
    def is_whole(self) -> bool:
        """Whether its numbers are whole ones."""
        return all(isinstance(bound, int) for bound in (self.low, self.high, self.step) if bound is not None)

    def written(self, choice: Choice) -> str:
        """A value as it stands in the server's file."""
        return f"{choice:.6g}{self.unit}" if isinstance(choice, float) else f"{choice}{self.unit}"


class Space(FileModel):
    """A search space: the database it is for, how a line of the server's own file is written there, and the settings by
    name.
    """

    database: str = Field(description="The database.")
    file: str = Field(description="Where the settings are pasted.")
    line: str = Field(default="{key} = {value}", description="A line of it, with {key} and {value}.")
    settings: dict[str, ServerSetting] = Field(
        min_length=1, description="The server settings that are searched, by their names in the server's file."
    )

    @model_validator(mode="after")
    def _check(self) -> "Space":
        if "{key}" not in self.line or "{value}" not in self.line:
            raise ValueError("line must have {key} and {value}")
        return self

    @property
    def weaker(self) -> list[str]:
        """The settings that trade durability for speed."""
        return [key for key, setting in self.settings.items() if setting.durability]

    def with_durability(self) -> "Space":
        """The space without what trades durability for speed. Raises UsageError when nothing is left."""
        kept = {key: setting for key, setting in self.settings.items() if not setting.durability}
        if not kept:
            raise UsageError("all settings of the space trade durability for speed; include them with --allow-durability")
        return self.model_copy(update={"settings": kept})

    def written(self, choices: dict[str, Choice]) -> Configuration:
        """Choices as they stand in the server's file."""
        return {key: self.settings[key].written(choice) for key, choice in choices.items()}

    def snippet(self, configuration: Configuration) -> str:
        """The lines to paste into the server's own file."""
        lines = {key: setting.line for key, setting in self.settings.items() if setting.line}
        return "\n".join(
            lines.get(key, self.line).replace("{key}", key).replace("{value}", value) for key, value in configuration.items()
        )

    def described(self) -> SearchSpace:
        """What results say of it."""
        return SearchSpace.model_validate(self.model_dump(mode="json"))


def load_space(database: str, file: Path | None) -> tuple[Space, Path]:
    """The space of a file, or the one that comes with the package for a database, and where it stands. Raises UsageError."""
    path = file or SPACES / f"{database.replace('+', '-')}.toml"
    if file is None and not path.exists():
        shipped = ", ".join(sorted(file.stem for file in SPACES.glob("*.toml")))
        raise UsageError(
            f"--space: no search space for {database} comes with sensorbench ({shipped} have one); name a file of yours"
        )
    space = load(path, Space)
    if space.database != database:
        raise UsageError(f"{path}: it is for {space.database}, and the target is {database}")
    return space, path
