"""Reading results, whole ones and what is left of those that were cut short."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ValidationError

from sensorbench._engine import read_interval_log
from sensorbench.errors import UsageError
from sensorbench.results.manifest import FORMAT, MANIFEST_FILE, ComparisonManifest, Process, RunManifest, State
from sensorbench.results.writer import (
    CHECKS_FILE,
    CONTENTS_FILE,
    EXPERIMENTS_FOLDER,
    FAILURE_FILE,
    HISTOGRAM_FILE,
    LOAD_FILE,
    PLANS_FILE,
    REFERENCE_FILE,
    SEGMENTS_FOLDER,
    SUMMARY_FILE,
    joined_logs,
    setting_folder,
)

Manifest = TypeVar("Manifest", bound=BaseModel)


@dataclass(frozen=True)
class RunResult:
    """One run on disk."""

    folder: Path
    manifest: RunManifest

    @property
    def state(self) -> State:
        """How it ended. One that still says `running` and whose process is gone was interrupted."""
        return state_of(self.manifest.state, self.manifest.process)

    def table(self, name: str) -> pa.Table | None:
        """One of its tables: operations, answers, intervals, events, resources, status; None when nothing was written."""
        whole = self.folder / f"{name}.parquet"
        if whole.exists():
            return pq.read_table(whole)
        segments = sorted((self.folder / SEGMENTS_FOLDER).glob(f"{name}-*.parquet"))
        return pa.concat_tables([pq.read_table(segment) for segment in segments]) if segments else None

    def histograms(self) -> pa.Table | None:
        """Its histograms: tag, start_ns, length_ns, value_ns, count; None when nothing was written."""
        whole = self.folder / HISTOGRAM_FILE
        logs = [whole] if whole.exists() else sorted((self.folder / SEGMENTS_FOLDER).glob("histograms-*.hlog"))
        if not logs:
            return None
        text = "".join(joined_logs(log.read_text(encoding="utf-8") for log in logs))
        return pa.Table.from_batches([read_interval_log(text)])


@dataclass(frozen=True)
class ComparisonResult:
    """An experiment or study on disk."""

    folder: Path
    manifest: ComparisonManifest
    runs: dict[str, list[RunResult]] = field(default_factory=dict)
    loads: dict[str, dict[str, Any]] = field(default_factory=dict)
    checks: dict[str, dict[str, Any]] = field(default_factory=dict)
    contents: dict[str, dict[str, Any]] = field(default_factory=dict)
    plans: dict[str, dict[str, Any]] = field(default_factory=dict)
    failures: dict[str, dict[str, Any]] = field(default_factory=dict)
    reference: pa.Table | None = None
    summary: dict[str, Any] | None = None

    @property
    def state(self) -> State:
        """How it ended."""
        return state_of(self.manifest.state, self.manifest.process)

    def loaded_s(self, setting: str) -> float | None:
        """The time until everything of a setting was loaded and settled; None when it was not."""
        load = self.loads.get(setting)
        return load["load_s"] + load["settle_s"] if load else None

    def size_bytes(self, setting: str) -> float | None:
        """What the loaded data of a setting take, on disk or in memory; None when that is not known."""
        load = self.loads.get(setting)
        total = load["size"]["total_bytes"] if load else None
        return None if total is None else float(total)

    def bytes_a_reading(self, setting: str) -> float | None:
        """What a setting takes for each reading of the dataset, all copies and repetitions; None when that is not known."""
        size, load = self.size_bytes(setting), self.loads.get(setting)
        return size / load["readings"] if size and load and load["readings"] else None

    def largest_partition_bytes(self, setting: str) -> int | None:
        """The largest partition of any table of a setting; None where the database has none or does not tell."""
        load = self.loads.get(setting)
        return max(load["size"].get("largest_partitions", {}).values(), default=None) if load else None

    def usable_runs(self, setting: str) -> list[RunResult]:
        """The runs that figures are taken from: complete ones; when there are none, what is left of the others."""
        complete = [run for run in self.runs[setting] if run.state == "complete"]
        return complete or self.runs[setting]


def state_of(written: State, process: Process) -> State:
    """How work ended that says so and was done by this process: what still says `running` when that is gone was interrupted."""
    return "interrupted" if written == "running" and not process.is_alive() else written


def read_run(folder: Path) -> RunResult:
    """A run. Raises UsageError when there is none."""
    return RunResult(folder, manifest_in(folder, RunManifest))


def has_results(folder: Path) -> bool:
    """Whether results, or what is left of some, are in a folder: of a run, or of a comparison."""
    return (folder / MANIFEST_FILE).exists()


def kind_of(folder: Path) -> str | None:
    """What kind of results a folder's manifest is of: run, experiment, study, stress or tune; None when it does not say."""
    try:
        kind: str | None = json.loads((folder / MANIFEST_FILE).read_text(encoding="utf-8")).get("kind")
    except (OSError, json.JSONDecodeError):
        return None
    return kind


def read_comparison(folder: Path) -> ComparisonResult:
    """An experiment or study. Raises UsageError when there is none."""
    manifest = manifest_in(folder, ComparisonManifest)
    settings = [setting.id for setting in manifest.settings]
    runs = {setting: _runs(setting_folder(folder, setting)) for setting in settings}
    reference = folder / REFERENCE_FILE
    return ComparisonResult(
        folder,
        manifest,
        runs,
        _json_files(folder, settings, LOAD_FILE),
        _json_files(folder, settings, CHECKS_FILE),
        _json_files(folder, settings, CONTENTS_FILE),
        _json_files(folder, settings, PLANS_FILE),
        _json_files(folder, settings, FAILURE_FILE),
        pq.read_table(reference) if reference.exists() else None,
        json.loads((folder / SUMMARY_FILE).read_text(encoding="utf-8")) if (folder / SUMMARY_FILE).exists() else None,
    )


def _runs(folder: Path) -> list[RunResult]:
    folders = [run for run in folder.glob("run-*") if has_results(run)]
    return sorted((read_run(run) for run in folders), key=lambda run: run.manifest.repeat)


def _json_files(folder: Path, settings: list[str], name: str) -> dict[str, dict[str, Any]]:
    files = {setting: setting_folder(folder, setting) / name for setting in settings}
    return {setting: json.loads(file.read_text(encoding="utf-8")) for setting, file in files.items() if file.exists()}


def manifest_in(folder: Path, model: type[Manifest]) -> Manifest:
    """The manifest of a folder of results. Raises UsageError when there is none, or one of something else."""
    path = folder / MANIFEST_FILE
    if not path.exists():
        inner = f"; its experiments are in {EXPERIMENTS_FOLDER}/" if (folder / EXPERIMENTS_FOLDER).exists() else ""
        raise UsageError(f"{folder}: no results are there ({MANIFEST_FILE} is missing){inner}")
    text = path.read_text(encoding="utf-8")
    try:
        found = json.loads(text).get("format", 0)
        if found > FORMAT:
            raise UsageError(f"{path}: written by a newer version of sensorbench (format {found}); this one reads {FORMAT}")
        return model.model_validate_json(text)
    except (ValidationError, json.JSONDecodeError) as error:
        raise UsageError(f"{path}: not a manifest of a {model.__name__.removesuffix('Manifest').lower()}: {error}") from None
