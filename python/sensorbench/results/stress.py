"""What a stress run leaves: its manifest, and a folder for each run of the engine.

`populate/` is the run that put the records there, `runs/` those at rates: one with all steps, or one for each trial of a search.
"""

from dataclasses import dataclass, field
from pathlib import Path

from sensorbench.results.manifest import MANIFEST_FILE, State, StressManifest
from sensorbench.results.reader import RunResult, manifest_in, read_tolerant_run, runs_below, state_of, told_damage
from sensorbench.results.stored import is_stored
from sensorbench.results.writer import WorkWriter

POPULATE_FOLDER = "populate"
RUNS_FOLDER = "runs"


@dataclass(frozen=True)
class StressResult:
    """A stress run on disk."""

    folder: Path
    manifest: StressManifest
    populate: RunResult | None
    runs: list[RunResult] = field(default_factory=list)

    @property
    def state(self) -> State:
        """How it ended."""
        return state_of(self.manifest.state, self.manifest.process)

    @property
    def damage(self) -> list[str]:
        """What is damaged and was left out: file and problem each."""
        return [text for run in self.runs for text in told_damage(run)]


class StressWriter(WorkWriter[StressManifest]):
    """Writes what belongs to a stress run as a whole, and hands out the folders of its runs."""

    @property
    def populate_folder(self) -> Path:
        """Where the run that populates goes."""
        return self.folder / POPULATE_FOLDER

    def run_folder(self, number: int) -> Path:
        """Where the run with this number, from 1, goes."""
        return self.folder / RUNS_FOLDER / f"{number:03}"


def read_stress(folder: Path) -> StressResult:
    """A stress run. Raises UsageError when there is none, DamagedResultsError."""
    populate = folder / POPULATE_FOLDER
    return StressResult(
        folder,
        manifest_in(folder, StressManifest),
        read_tolerant_run(populate) if is_stored(populate / MANIFEST_FILE) else None,
        [read_tolerant_run(run) for run in runs_below(folder / RUNS_FOLDER)],
    )
