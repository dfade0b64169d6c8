"""What a study of factors leaves: its manifest, and a folder for each measurement of a cell, which is a stress run, and how it came out.

`probe/` is what the default takes, by which rates are chosen; `cells/<cell>/round-N` are the measurements.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from sensorbench.errors import UsageError
from sensorbench.places import remove_results
from sensorbench.results.files import write_result
from sensorbench.results.manifest import FactorsManifest, State
from sensorbench.results.reader import manifest_in, state_of
from sensorbench.results.stored import is_stored, read_model
from sensorbench.results.writer import WorkWriter

PROBE_FOLDER = "probe"
CELLS_FOLDER = "cells"
MEASUREMENT_FILE = "measurement.json"


class CellMeasurement(BaseModel):
    """`measurement.json`: how the measurement of a cell came out, and its figures."""

    model_config = ConfigDict(extra="forbid")

    cell: str
    round: int
    outcome: Literal["measured", "failed"]
    reason: str | None = None
    seed: int
    took_s: float
    filled: dict[str, Any] = Field(default={}, description="Figures of putting the records there, as fast as they could be.")
    steps: list[dict[str, Any]] = Field(default=[], description="Figures of each rate, in their order.")


@dataclass(frozen=True)
class FactorsResult:
    """A study of factors on disk: the measurements of each cell, in the order of their rounds."""

    folder: Path
    manifest: FactorsManifest
    measurements: dict[str, list[CellMeasurement]]

    @property
    def state(self) -> State:
        """How it ended."""
        return state_of(self.manifest.state, self.manifest.process)


class FactorsWriter(WorkWriter[FactorsManifest]):
    """Writes what belongs to the study as a whole, and hands out the folders of its measurements."""

    def probe_folder(self) -> Path:
        """Where the probe goes; what one that was cut short left there is removed."""
        return _emptied(self.folder / PROBE_FOLDER)

    def new_folder(self, cell: str, round_: int) -> Path:
        """Where a measurement goes; what one that was cut short left there is removed."""
        return _emptied(self.folder / CELLS_FOLDER / cell / f"round-{round_}")

    def write_measurement(self, folder: Path, measurement: CellMeasurement) -> None:
        """Says how a measurement came out; only then it counts."""
        folder.mkdir(parents=True, exist_ok=True)
        write_result(folder / MEASUREMENT_FILE, measurement.model_dump_json(indent=2) + "\n")


def _emptied(folder: Path) -> Path:
    remove_results(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    return folder


def resumed(folder: Path, wanted: FactorsManifest) -> FactorsWriter:
    """Goes on with a study; it may have more parts and rounds than before. Raises UsageError for another one."""
    there = manifest_in(folder, FactorsManifest)
    for key in ("name", "target", "nodes", "scale", "step_s", "seed", "workload"):
        if getattr(there, key) != getattr(wanted, key):
            raise UsageError(f"--resume: the study in {folder} has another {key}; give the same options, or another --out")
    lacking = [part for part in there.parts if part not in wanted.parts]
    if lacking:
        raise UsageError(
            f"--resume: the study in {folder} has the part {lacking[0]}, too; give --part {lacking[0]}, or another --out"
        )
    if state_of(there.state, there.process) == "running":
        raise UsageError(f"--resume: the study in {folder} goes on")
    kept = {"created": there.created, "reached": there.reached, "rates": there.rates}
    return FactorsWriter(folder, wanted.model_copy(update=kept))


def read_factors(folder: Path) -> FactorsResult:
    """A study of factors. Raises UsageError when there is none, DamagedResultsError."""
    manifest = manifest_in(folder, FactorsManifest)
    return FactorsResult(folder, manifest, {cell: read_measurements(folder, cell) for cell in manifest.cells})


def read_measurements(folder: Path, cell: str) -> list[CellMeasurement]:
    """The measurements of a cell that came to an end, round by round."""
    files = (place / MEASUREMENT_FILE for place in (folder / CELLS_FOLDER / cell).glob("round-*"))
    found = [read_model(file, CellMeasurement) for file in files if is_stored(file)]
    return sorted(found, key=lambda one: one.round)


def is_measured(folder: Path, cell: str, round_: int) -> bool:
    """Whether a cell was measured in a round. One that failed was not: who goes on tries it again."""
    return any(one.round == round_ and one.outcome == "measured" for one in read_measurements(folder, cell))
