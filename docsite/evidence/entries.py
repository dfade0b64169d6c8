"""`evidence/evidence.toml`: which measurements are published, by which commands, and why others are not there yet."""

import shlex
import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from sensorbench.errors import UsageError, problem_text
from sensorbench.results.bundle import BUNDLE_SUFFIX
from sensorbench.studies import kinds_of_studies

ROOT = Path(__file__).parent.parent.parent
FOLDER = ROOT / "evidence"
ENTRIES_FILE = FOLDER / "evidence.toml"
MADE_FILE = FOLDER / "made.json"
PAGES = ROOT / "docs" / "studies"
README = ROOT / "README.md"

MAX_MB = 3.0
MAX_TOTAL_MB = 40.0
MB = 1e6

Words = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]


class Entry(BaseModel):
    """A measurement that is published: the study that it is of, and how it is made."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    study: Words = Field(description="The study whose page shows it.")
    command: Words = Field(description="The command after `sensorbench`, without --out, --resume and --no-open.")
    machine: Words = Field(description="What the machine must have, and what must not run on it meanwhile.")
    budget: Words = Field(description="How long it takes, in words of --budget.")
    expected_mb: float = Field(gt=0.0, le=MAX_MB, description="The size of the bundle.")
    no_advice: Words | None = Field(default=None, description="Why recommendations do not go by it; they do if nothing is said.")

    @property
    def arguments(self) -> list[str]:
        """The command as arguments."""
        return shlex.split(self.command)

    def is_of(self, command: Sequence[str]) -> bool:
        """Whether a whole command is this one, with whatever is behind it."""
        return list(command[1 : 1 + len(self.arguments)]) == self.arguments


class Entries(BaseModel):
    """All of the file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    bundles: dict[str, Entry] = Field(description="The measurements by name, which is that of the bundle.")
    lacking: dict[str, Words] = Field(description="By study: why there is no evidence of it, or which evidence is not there yet.")

    @model_validator(mode="after")
    def _is_of_studies(self) -> "Entries":
        studies = set(kinds_of_studies())
        named = [*(entry.study for entry in self.bundles.values()), *self.lacking]
        if unknown := sorted(set(named) - studies):
            raise ValueError(f"there is no study {unknown[0]!r}; expected one of {', '.join(sorted(studies))}")
        return self


class Made(BaseModel):
    """How a bundle was made, which the bundle itself cannot say."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sha256: str
    took_s: float = Field(
        description="How long the command ran; of a measurement that was interrupted or had a smaller budget first, all runs of it together."
    )
    load_before: float = Field(description="The load average of the last minute when it began.")
    load_after: float = Field(description="The same when it ended; the measurement is part of it.")
    cpus: int
    others_cpu_s: float | None = Field(
        default=None,
        description="CPU time that other processes and the kernel's own threads used meanwhile; None if it was not recorded.",
    )

    def after(self, earlier: "Made") -> "Made":
        """How both were made together: the earlier run, and the one that continued with it."""
        known = self.others_cpu_s is not None and earlier.others_cpu_s is not None
        return self.model_copy(
            update={
                "took_s": self.took_s + earlier.took_s,
                "load_before": max(self.load_before, earlier.load_before),
                "others_cpu_s": (self.others_cpu_s or 0.0) + (earlier.others_cpu_s or 0.0) if known else None,
            }
        )


class AllMade(BaseModel):
    """`evidence/made.json`: by name, how each bundle was made."""

    model_config = ConfigDict(extra="forbid")

    bundles: dict[str, Made] = {}


@cache
def read_entries(file: Path = ENTRIES_FILE) -> Entries:
    """The measurements that are published. Raises UsageError."""
    try:
        return Entries.model_validate(tomllib.loads(file.read_text(encoding="utf-8")))
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{file}: {error}") from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise UsageError(f"{file}: {'.'.join(map(str, first['loc'])) or 'the file'}: {problem_text(first)}") from None


def require_entry(name: str) -> Entry:
    """The measurement of a name. Raises UsageError."""
    entries = read_entries()
    if name not in entries.bundles:
        raise UsageError(f"{ENTRIES_FILE}: there is no evidence {name!r}; expected one of {', '.join(entries.bundles)}")
    return entries.bundles[name]


def read_made(folder: Path = FOLDER) -> AllMade:
    """How the bundles were made."""
    file = folder / MADE_FILE.name
    return AllMade.model_validate_json(file.read_bytes()) if file.exists() else AllMade()


def bundle_file(name: str, folder: Path = FOLDER) -> Path:
    """Where the bundle of a measurement lies."""
    return folder / f"{name}{BUNDLE_SUFFIX}"


def bundle_files(folder: Path = FOLDER) -> dict[str, Path]:
    """The bundles that exist, by name."""
    return {file.stem: file for file in sorted(folder.glob(f"*{BUNDLE_SUFFIX}"))}
