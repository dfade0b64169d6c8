"""What a stress run leaves: its manifest, and a folder for each run of the engine.

`populate/` is the run that put the records there, `runs/` those at rates: one with all steps, or one for each trial of a search.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sensorbench.errors import UsageError
from sensorbench.results.files import release_reserve, reserve, write_text
from sensorbench.results.manifest import MANIFEST_FILE, State, StressManifest, now
from sensorbench.results.reader import RunResult, manifest_in, read_run, state_of
from sensorbench.results.writer import SUMMARY_FILE

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


class StressWriter:
    """Writes what belongs to a stress run as a whole, and hands out the folders of its runs."""

    def __init__(self, folder: Path, manifest: StressManifest) -> None:
        self.folder = folder
        self.manifest = manifest
        folder.mkdir(parents=True, exist_ok=True)
        reserve(folder)
        self._write()

    @property
    def populate_folder(self) -> Path:
        """Where the run that populates goes."""
        return self.folder / POPULATE_FOLDER

    def run_folder(self, number: int) -> Path:
        """Where the run with this number, from 1, goes."""
        return self.folder / RUNS_FOLDER / f"{number:03}"

    def update(self, **changes: Any) -> None:
        """Changes the manifest."""
        self.manifest = self.manifest.model_copy(update=changes)
        self._write()

    def finish(self, state: State, reason: str | None = None) -> None:
        """Says how it ended."""
        release_reserve(self.folder)
        self.update(state=state, reason=reason, finished=now())

    def _write(self) -> None:
        write_text(self.folder / MANIFEST_FILE, self.manifest.model_dump_json(indent=2) + "\n")


def write_stress_summary(folder: Path, summary: dict[str, Any]) -> None:
    """Writes the summary of a stress run."""
    write_text(folder / SUMMARY_FILE, json.dumps(summary, indent=2, allow_nan=False) + "\n")


def is_stress(folder: Path) -> bool:
    """Whether a stress run is in a folder."""
    try:
        manifest_in(folder, StressManifest)
    except UsageError:
        return False
    return True


def read_stress(folder: Path) -> StressResult:
    """A stress run. Raises UsageError when there is none."""
    populate = folder / POPULATE_FOLDER
    runs = sorted(path.parent for path in (folder / RUNS_FOLDER).glob(f"*/{MANIFEST_FILE}"))
    return StressResult(
        folder,
        manifest_in(folder, StressManifest),
        read_run(populate) if (populate / MANIFEST_FILE).exists() else None,
        [read_run(run) for run in runs],
    )
