"""What runs of other tools' workloads leave: a manifest, and the folder of one run of the engine."""

from dataclasses import dataclass
from pathlib import Path

from sensorbench.results.manifest import MANIFEST_FILE
from sensorbench.results.planned import CassandraStressManifest, YcsbManifest
from sensorbench.results.reader import Manifest, Result, RunResult, read_manifest, read_tolerant_run
from sensorbench.results.stored import is_stored

# Below the folder of the results.
RUN_FOLDER = Path("runs") / "001"


@dataclass(frozen=True)
class ToolResult(Result[Manifest]):
    """Results on disk; the run is None if it was not begun."""

    run: RunResult | None


def read_ycsb(folder: Path) -> ToolResult[YcsbManifest]:
    """A phase of YCSB. Raises UsageError when there is none, DamagedResultsError."""
    return _read(folder, YcsbManifest)


def read_cassandra_stress(folder: Path) -> ToolResult[CassandraStressManifest]:
    """A run of a profile of cassandra-stress. Raises UsageError when there is none, DamagedResultsError."""
    return _read(folder, CassandraStressManifest)


def _read(folder: Path, manifest: type[Manifest]) -> ToolResult[Manifest]:
    run = folder / RUN_FOLDER
    begun = read_tolerant_run(run) if is_stored(run / MANIFEST_FILE) else None
    return ToolResult(folder, read_manifest(folder, manifest), begun)
