"""What a study of factors leaves: its manifest, and a folder for each measurement of a cell, which is a stress run, and how it came out.

`probe/` is what the default takes, by which rates are chosen; `cells/<cell>/round-N` are the measurements; `templates/<cell>/round-N` is how the
records were added that cells share, of which this one is the first.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, field_validator

from sensorbench.errors import UsageError
from sensorbench.paths import remove_results
from sensorbench.results.files import write_result
from sensorbench.results.planned import FactorsManifest
from sensorbench.results.reader import Result, read_manifest
from sensorbench.results.stored import is_stored, read_model
from sensorbench.results.summary.stress import Latencies
from sensorbench.results.writer import ManifestWriter

PROBE_FOLDER = "probe"
CELLS_FOLDER = "cells"
TEMPLATES_FOLDER = "templates"
MEASUREMENT_FILE = "measurement.json"

# Which of a cell's figures are meant: those of putting the records there, or those of a step, counted from 0; -1 is the last.
FILLED: Final = "filled"
LAST = -1
Where = Literal["filled"] | int


class ServerUse(BaseModel):
    """What the servers used over a time, of all nodes together; null for what they did not report. Rates per second, sizes in bytes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    # Where a field has several names, the last is that of results of format 1 that were written before the glossary.
    server_cpu: float | None = Field(
        default=None, description="CPUs that were busy.", validation_alias=AliasChoices("server_cpu", "processors")
    )
    load_average: float | None = Field(
        default=None,
        description="Of the machine of the servers, over the last quarter of the time; results from before it was sampled have none.",
    )
    disk_read_per_s: float | None = None
    disk_written_per_s: float | None = None
    compactions_per_s: float | None = None
    compacted_per_s: float | None = None
    flushes_per_s: float | None = None
    garbage_collection: float | None = None
    memtable_bytes: float | None = None
    disk_bytes: float | None = None


class FilledFigures(ServerUse):
    """Figures of putting the records there, as fast as that goes. Latencies are service times, in s."""

    written: int
    took_s: float
    per_s: float
    mean_s: float | None = None
    p99_s: float | None = None
    sstables: float | None = None
    table_bytes: float | None = None


class StepFigures(ServerUse):
    """Figures of a rate that was held. Latencies are response times, in s."""

    rate_per_s: float
    offered: int
    ok: int
    error: int
    timeout: int
    dropped: int = Field(
        description="Arrivals that never started before the end.", validation_alias=AliasChoices("dropped", "unstarted")
    )
    completed_per_s: float
    client_bound: str | None = Field(default=None, description="Why the client was the limit; null if it was not.")
    client_cpu: float | None = None
    mean_s: float | None = None
    median_s: float | None = None
    p99_s: float | None = None
    p99_of_offered_s: float | None = Field(
        default=None,
        description="Of all arrivals, so that those that were dropped are not forgotten.",
        validation_alias=AliasChoices("p99_of_offered_s", "p99_of_due_s"),
    )
    hit_rate: float | None = Field(default=None, description="Of the step's last quarter.")
    hit_rate_of_all: float | None = Field(default=None, description="Of the whole step.")
    steady_s: float | None = Field(default=None, description="When the hit rate was steady; null if it never was.")
    by_operation: dict[str, Latencies | None] = {}


class CellMeasurement(BaseModel):
    """`measurement.json`: how the measurement of a cell came out, and its figures."""

    model_config = ConfigDict(extra="forbid")

    cell: str
    round: int
    outcome: Literal["measured", "failed"]
    reason: str | None = None
    seed: int
    took_s: float
    data_of: str | None = Field(
        default=None,
        description="Folder of the results that has how the records were added with which the servers started; null if they were added here.",
    )
    filled: FilledFigures | None = Field(default=None, description="Null where the records were there before.")
    steps: list[StepFigures] = Field(default=[], description="Figures of each rate, in their order.")

    @field_validator("filled", mode="before")
    @classmethod
    def _of_format_1(cls, value: Any) -> Any:
        """Older results have {} for null."""
        return value or None


@dataclass(frozen=True)
class FactorsResult(Result[FactorsManifest]):
    """A study of factors on disk: the measurements of each cell, in the order of their rounds."""

    measurements: dict[str, list[CellMeasurement]]

    def up_to(self, round_: int) -> "FactorsResult":
        """The same without later rounds."""
        kept = {cell: [each for each in found if each.round <= round_] for cell, found in self.measurements.items()}
        return replace(self, measurements=kept)


class FactorsWriter(ManifestWriter[FactorsManifest]):
    """Writes what belongs to the study as a whole, and hands out the folders of its measurements."""

    def probe_folder(self) -> Path:
        """Where the probe goes; what one that was cut short left there is removed."""
        return _emptied(self.folder / PROBE_FOLDER)

    def new_folder(self, cell: str, round_: int) -> Path:
        """Where a measurement goes; what one that was cut short left there is removed."""
        return _emptied(self.folder / CELLS_FOLDER / cell / f"round-{round_}")

    def template_folder(self, cell: str, round_: int) -> Path:
        """Where adding records goes that cells share; what was left there when it was cut short, or is made again, is removed."""
        return _emptied(self.folder / TEMPLATES_FOLDER / cell / f"round-{round_}")

    def write_measurement(self, folder: Path, measurement: CellMeasurement) -> None:
        """Says how a measurement came out; only then it counts."""
        folder.mkdir(parents=True, exist_ok=True)
        write_result(folder / MEASUREMENT_FILE, measurement.model_dump_json(indent=2) + "\n")


def _emptied(folder: Path) -> Path:
    remove_results(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    return folder


def continued(before: FactorsManifest, after: FactorsManifest, folder: Path) -> FactorsManifest:
    """The manifest with which a study continues; it may have more parts and rounds than before. Raises UsageError for another study."""
    for key in ("name", "target", "nodes", "cluster", "scale", "step_s", "seed", "workload"):
        if getattr(before.plan, key) != getattr(after.plan, key):
            raise UsageError(f"--resume: the study in {folder} has another {key}; give the same options, or another --out")
    lacking = [part for part in before.plan.parts if part not in after.plan.parts]
    if lacking:
        raise UsageError(
            f"--resume: the study in {folder} has the part {lacking[0]}, too; give --part {lacking[0]}, or another --out"
        )
    kept: dict[str, object] = {key: getattr(before.plan, key) for key in ("reached", "rates", "shares_records", "took_s")}
    if after.plan.budget_s is not None:
        left_out = {name: why for name, why in before.plan.left_out.items() if name not in after.plan.parts}
        kept["left_out"] = {**left_out, **after.plan.left_out}
    plan = after.plan.model_copy(update=kept)
    return after.model_copy(update={"created": before.created, "plan": plan})


def read_factors(folder: Path) -> FactorsResult:
    """A study of factors. Raises UsageError when there is none, DamagedResultsError."""
    manifest = read_manifest(folder, FactorsManifest)
    return FactorsResult(folder, manifest, {cell: read_measurements(folder, cell) for cell in manifest.plan.cells})


def read_measurements(folder: Path, cell: str) -> list[CellMeasurement]:
    """The measurements of a cell that came to an end, round by round."""
    files = (place / MEASUREMENT_FILE for place in (folder / CELLS_FOLDER / cell).glob("round-*"))
    found = [read_model(file, CellMeasurement) for file in files if is_stored(file)]
    return sorted(found, key=lambda measurement: measurement.round)
