"""What a load or queries of TSBS leave: a manifest, how each variant was loaded, and a run for each kind of query and variant."""

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from sensorbench.results.planned import TsbsManifest
from sensorbench.results.reader import Result, RunResult, read_loads, read_manifest, read_reference, read_tolerant_run, runs_below
from sensorbench.results.summary.comparison import LoadFigures
from sensorbench.results.writer import RUNS_FOLDER


@dataclass(frozen=True)
class TsbsResult(Result[TsbsManifest]):
    """Results on disk. Operations of `reference` are numbered as the queries of the plan."""

    loads: dict[str, LoadFigures]
    runs: list[RunResult]
    reference: pa.Table | None


def read_tsbs(folder: Path) -> TsbsResult:
    """A load or queries of TSBS. Raises UsageError when there is none, DamagedResultsError."""
    manifest = read_manifest(folder, TsbsManifest)
    runs = [read_tolerant_run(run) for run in runs_below(folder / RUNS_FOLDER)]
    loads = read_loads(folder, [variant.id for variant in manifest.variants])
    return TsbsResult(folder, manifest, loads, runs, read_reference(folder))
