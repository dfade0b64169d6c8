"""What a search for better settings leaves: its manifest, and a folder for each measurement, which is a stress run, and how
it came out.

`trials/` are those of the search, `confirmation/` those that were measured afterwards, to see whether the best is better
indeed.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from sensorbench.errors import UsageError
from sensorbench.paths import remove_results
from sensorbench.results.files import write_result
from sensorbench.results.planned import TuneManifest
from sensorbench.results.reader import Result, read_manifest
from sensorbench.results.stored import is_stored, read_model
from sensorbench.results.writer import ManifestWriter

TRIALS_FOLDER = "trials"
CONFIRMATION_FOLDER = "confirmation"
MEASUREMENT_FILE = "measurement.json"

Role = Literal["default", "search", "best"]


class Measurement(BaseModel):
    """`measurement.json`: a configuration of a server, and what was measured there."""

    model_config = ConfigDict(extra="forbid")

    role: Role
    choices: dict[str, str | int | float] = Field(default={}, description="What the search chose, as in the search space.")
    configuration: dict[str, str] = Field(description="All settings, as in the server's own file.")
    outcome: Literal["measured", "stopped", "failed"]
    value: float | None = Field(description="The goal's figure; of a stopped one that of its beginning.")
    reason: str | None = None
    load_s: float | None = None
    size_bytes: float | None = None
    seed: int
    took_s: float


@dataclass(frozen=True)
class TuneResult(Result[TuneManifest]):
    """A search on disk, in the order in which its measurements were made."""

    trials: list[Measurement]
    confirmation: list[Measurement]


class TuneWriter(ManifestWriter[TuneManifest]):
    """Writes what belongs to a search as a whole, and hands out the folders of its measurements."""

    def new_folder(self, kind: str, number: int) -> Path:
        """Where the measurement with this number, from 1, goes; what one that was cut short left there is removed."""
        folder = self.folder / kind / f"{number:03}"
        remove_results(folder)
        folder.parent.mkdir(parents=True, exist_ok=True)
        return folder

    def forget(self, kind: str) -> None:
        """Removes all measurements of a kind."""
        remove_results(self.folder / kind)

    def write_measurement(self, folder: Path, measurement: Measurement) -> None:
        """Says how a measurement came out; only then it counts."""
        folder.mkdir(exist_ok=True)
        write_result(folder / MEASUREMENT_FILE, measurement.model_dump_json(indent=2) + "\n")


def continued(before: TuneManifest, after: TuneManifest, folder: Path) -> TuneManifest:
    """The manifest with which a search continues: for the same in all but its budget. Raises UsageError."""
    for key in ("goal", "space", "start", "seed", "workload", "pairs", "cluster", "hosts"):
        if getattr(before.plan, key) != getattr(after.plan, key):
            raise UsageError(f"--resume: the search in {folder} has another {key}; give the same options, or another --out")
    plan = before.plan.model_copy(update={"budget": after.plan.budget})
    return before.model_copy(
        update={"plan": plan, "status": "running", "reason": None, "process": after.process, "finished": None}
    )


def read_tune(folder: Path) -> TuneResult:
    """A search. Raises UsageError when there is none, DamagedResultsError."""
    manifest = read_manifest(folder, TuneManifest)
    trials, confirmation = (read_measurements(folder, kind) for kind in (TRIALS_FOLDER, CONFIRMATION_FOLDER))
    return TuneResult(folder, manifest, trials, confirmation)


def read_measurements(folder: Path, kind: str) -> list[Measurement]:
    """The measurements of one kind that came to an end, in their order."""
    files = (place / MEASUREMENT_FILE for place in sorted((folder / kind).glob("*")))
    return [read_model(file, Measurement) for file in files if is_stored(file)]
