"""What the MapReduce study leaves: its manifest, how loading went, and one record for each execution, written when it ends."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sensorbench.results.files import write_text
from sensorbench.results.manifest import MapReduceManifest, State
from sensorbench.results.reader import manifest_in, state_of
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
        write_text(self.folder / LOAD_FILE, json.dumps(loads, indent=2) + "\n")

    def write_execution(self, execution: Mapping[str, Any]) -> None:
        """Writes an execution that has ended."""
        folder = self.folder / EXECUTIONS_FOLDER
        folder.mkdir(exist_ok=True)
        self._executions += 1
        write_text(folder / f"{self._executions:04}.json", json.dumps(execution, indent=2) + "\n")


def read_mapreduce(folder: Path) -> MapReduceResult:
    """A MapReduce study. Raises UsageError when there is none."""
    load = folder / LOAD_FILE
    return MapReduceResult(
        folder,
        manifest_in(folder, MapReduceManifest),
        json.loads(load.read_text(encoding="utf-8")) if load.exists() else {},
        [json.loads(file.read_text(encoding="utf-8")) for file in sorted((folder / EXECUTIONS_FOLDER).glob("*.json"))],
    )
