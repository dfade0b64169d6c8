"""What the MapReduce study leaves: its manifest, how loading went, and one record for each execution, written when it ends."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sensorbench.results.files import write_result
from sensorbench.results.manifest import MapReduceManifest, State
from sensorbench.results.reader import manifest_in, state_of
from sensorbench.results.stored import is_stored, read_json, stored_in
from sensorbench.results.writer import LOAD_FILE, WorkWriter

EXECUTIONS_FOLDER = "executions"


@dataclass(frozen=True)
class MapReduceResult:
    """A MapReduce study on disk."""

    folder: Path
    manifest: MapReduceManifest
    loads: dict[str, dict[str, Any]]
    executions: list[dict[str, Any]]

    @property
    def state(self) -> State:
        """How it ended."""
        return state_of(self.manifest.state, self.manifest.process)


class MapReduceWriter(WorkWriter[MapReduceManifest]):
    """Writes what belongs to the work as a whole, and each execution."""

    def __init__(self, folder: Path, manifest: MapReduceManifest) -> None:
        super().__init__(folder, manifest)
        self._executions = 0

    def write_loads(self, loads: Mapping[str, dict[str, Any]]) -> None:
        """Writes how each system was loaded."""
        write_result(self.folder / LOAD_FILE, json.dumps(loads, indent=2) + "\n")

    def write_execution(self, execution: Mapping[str, Any]) -> None:
        """Writes an execution that has ended."""
        folder = self.folder / EXECUTIONS_FOLDER
        folder.mkdir(exist_ok=True)
        self._executions += 1
        write_result(folder / f"{self._executions:04}.json", json.dumps(execution, indent=2) + "\n")


def read_mapreduce(folder: Path) -> MapReduceResult:
    """A MapReduce study. Raises UsageError when there is none, DamagedResultsError."""
    load = folder / LOAD_FILE
    return MapReduceResult(
        folder,
        manifest_in(folder, MapReduceManifest),
        read_json(load) if is_stored(load) else {},
        [read_json(file) for file in stored_in(folder / EXECUTIONS_FOLDER, "*.json")],
    )
