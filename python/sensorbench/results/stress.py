"""What a stress run leaves: its manifest, and a folder for each run of the engine.

`populate/` is the run that put the records there, `runs/` those at rates: one with all steps, or one for each trial of a search.
"""

from dataclasses import dataclass, field
from pathlib import Path

from sensorbench.results.manifest import MANIFEST_FILE
from sensorbench.results.planned import StressManifest
from sensorbench.results.reader import Result, RunResult, described_damage, read_manifest, read_tolerant_run, runs_below
from sensorbench.results.stored import is_stored
from sensorbench.results.writer import RUNS_FOLDER, RunsWriter

POPULATE_FOLDER = "populate"


@dataclass(frozen=True)
class StressResult(Result[StressManifest]):
    """A stress run on disk."""

    populate: RunResult | None
    runs: list[RunResult] = field(default_factory=list)

    @property
    def damage(self) -> list[str]:
        """What is damaged and was left out: file and problem each."""
        return [text for run in self.runs for text in described_damage(run)]


class StressWriter(RunsWriter[StressManifest]):
    """Writes what belongs to a stress run as a whole, and hands out the folders of its runs."""

    @property
    def populate_folder(self) -> Path:
        """Where the run that populates goes."""
        return self.folder / POPULATE_FOLDER


def read_stress(folder: Path) -> StressResult:
    """A stress run. Raises UsageError when there is none, DamagedResultsError."""
    populate = folder / POPULATE_FOLDER
    return StressResult(
        folder,
        read_manifest(folder, StressManifest),
        read_tolerant_run(populate) if is_stored(populate / MANIFEST_FILE) else None,
        [read_tolerant_run(run) for run in runs_below(folder / RUNS_FOLDER)],
    )
