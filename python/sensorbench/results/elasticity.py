"""What `elasticity run` leaves: its manifest, how loading went, and a folder for each run, which has one change of the cluster in it."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError

from sensorbench.results.described import LoadReport
from sensorbench.results.files import write_result
from sensorbench.results.manifest import MANIFEST_FILE
from sensorbench.results.planned import ElasticityManifest
from sensorbench.results.reader import Result, RunResult, has_results, kind_of, read_manifest, read_run, runs_below
from sensorbench.results.stored import DamagedResultsError, is_stored, read_json
from sensorbench.results.summary.part import SummaryPart
from sensorbench.results.writer import LOAD_FILE, RUNS_FOLDER, SUMMARY_FILE, RunsWriter

# The kind of the summary of several results side by side.
COMPARISON = "elasticity comparison"


# Beside the folders of a study's parts: what was planned.
STUDY_FILE = "study.json"


class ElasticityStudyPlan(SummaryPart):
    """What a study of clusters measures, in the words of its options, and its parts: they are folders, and --resume continues with those that are not
    complete.
    """

    targets: list[str]
    scenarios: list[str]
    nodes: int | None
    dataset: str | None
    copies: int | None
    server_memory: int | None
    scale: float
    operations: int | None
    executions: int | None
    measurements: int | None
    warmup: float | None
    rate: float | None
    repetitions: int | None
    seed: int
    # Those that may have nodes, by their names; none where nodes are on this machine.
    hosts: list[str] = []
    parts: list[str]


def write_study_plan(folder: Path, plan: ElasticityStudyPlan) -> None:
    """Writes what a study measures, before its first part."""
    folder.mkdir(parents=True, exist_ok=True)
    write_result(folder / STUDY_FILE, plan.model_dump_json(indent=2) + "\n")


def read_study_plan(folder: Path) -> ElasticityStudyPlan | None:
    """What a study in a folder measures; None if none was begun there. Raises DamagedResultsError."""
    file = folder / STUDY_FILE
    if not is_stored(file):
        return None
    try:
        return ElasticityStudyPlan.model_validate(read_json(file))
    except ValidationError as error:
        raise DamagedResultsError(file, f"it is not a plan of a study of clusters ({error.error_count()} mistakes)") from None


@dataclass(frozen=True)
class ElasticityResult(Result[ElasticityManifest]):
    """Changes of a cluster on disk."""

    load: LoadReport | None
    runs: list[RunResult] = field(default_factory=list)


class ElasticityWriter(RunsWriter[ElasticityManifest]):
    """Writes what belongs to all changes together, and hands out the folders of their runs."""


def works_of(folder: Path) -> list[Path]:
    """The results that a folder compares, or will when all of them are there; none where it is no such folder."""
    if has_results(folder):
        return []
    if plan := read_study_plan(folder):
        return [folder / name for name in plan.parts if is_complete(folder / name)]
    summary = folder / SUMMARY_FILE
    if is_stored(summary):
        said = read_json(summary)
        return [folder / name for name in _folders(summary, said)] if said.get("kind") == COMPARISON else []
    return sorted(path.parent for path in folder.glob(f"*/{MANIFEST_FILE}") if kind_of(path.parent) == "elasticity")


def _folders(path: Path, summary: dict[str, Any]) -> list[str]:
    """The folders that a comparison names, as its format has them: those of format 1 have a list of their own."""
    try:
        is_first = "format" not in summary
        folders = summary["folders"] if is_first else [work["folder"] for work in summary["result"]["works"]]
    except (KeyError, TypeError):
        folders = None
    if not isinstance(folders, list) or not all(isinstance(folder, str) for folder in folders):
        raise DamagedResultsError(path, "it does not name the folders of what it compares")
    return folders


def parts_left(folder: Path) -> list[str]:
    """The parts of a study in a folder that have no complete results; none where it is not a study."""
    plan = read_study_plan(folder)
    return [name for name in plan.parts if not is_complete(folder / name)] if plan else []


def is_complete(folder: Path) -> bool:
    """Whether changes of a cluster were carried out to their end."""
    return has_results(folder) and read_manifest(folder, ElasticityManifest).state == "complete"


def read_elasticity(folder: Path) -> ElasticityResult:
    """Changes of a cluster on disk. Raises UsageError when there is none, DamagedResultsError."""
    load = folder / LOAD_FILE
    return ElasticityResult(
        folder,
        read_manifest(folder, ElasticityManifest),
        cast("LoadReport", read_json(load)) if is_stored(load) else None,
        [read_run(run) for run in runs_below(folder / RUNS_FOLDER)],
    )
