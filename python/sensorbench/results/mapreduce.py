"""What the MapReduce study leaves: its manifest, how loading went, and one record for each execution, written when it ends."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field

from sensorbench.errors import UsageError
from sensorbench.results.described import LoadedRows
from sensorbench.results.files import remove_result, write_result
from sensorbench.results.planned import MapReduceManifest
from sensorbench.results.reader import Result, read_manifest
from sensorbench.results.stored import as_model, is_stored, read_json, read_model, stored_in
from sensorbench.results.summary.part import SummaryPart
from sensorbench.results.writer import LOAD_FILE, ManifestWriter

EXECUTIONS_FOLDER, PLACEMENTS_FOLDER = "executions", "placements"


class JobRecord(SummaryPart):
    """One of the two jobs for a word. What Spark counts is null if it was not Spark that executed it."""

    name: str
    duration_s: float
    executed_s: float | None = Field(default=None, description="The time in which a stage was executed.")
    map_tasks: int | None = None
    local_tasks: int | None = Field(
        default=None, description="Map tasks at the node that has their split, by Spark's scheduler; null in older results."
    )
    tasks: int | None = None
    run_s: float | None = None
    deserialize_s: float | None = None
    read_rows: int | None = Field(default=None, description="Rows that came through the connector, counted one by one.")
    read_bytes: int | None = Field(default=None, description="Bytes of their text.")
    spark_read_rows: int | None = Field(default=None, description="Spark's own counter; null if the connector fills none.")
    spark_read_bytes: int | None = None
    shuffle_bytes: int | None = None


class WordRecord(SummaryPart):
    """Both jobs for a word, and what they found."""

    word: str
    jobs: tuple[JobRecord, JobRecord]
    pairs: int
    occurrences: int
    list_length: int | None = Field(
        default=None, description="Elements of the list that the second job read; null for a native job."
    )
    equal: bool = Field(description="Whether the results equal those of DuckDB.")


class _ExecutionRecord(SummaryPart):
    execution: int
    system: str
    workers: int | None = Field(description="Null for the native job of a database.")
    nodes: int | None = Field(
        default=None, description="Nodes of the database; null of files, of servers that are not the lab's, and in older results."
    )


class CompleteExecution(_ExecutionRecord):
    """An execution that ended with results. The parts of the set-up are null for a native job."""

    failed: None = None
    context_s: float | None = None
    executors_s: float | None = None
    launch_s: float | None = None
    total_s: float = Field(description="From the submission to the final result, for the first word.")
    setup_s: float
    words: list[WordRecord] = Field(description="One word; in older results the others after it, in the same application.")


class FailedExecution(_ExecutionRecord):
    """An execution that failed, and what the database, the connector or Spark says of it."""

    failed: str


Execution = CompleteExecution | FailedExecution


class NodeShare(SummaryPart):
    """What a node holds of the data; null if it does not report it."""

    parts: int | None = Field(default=None, description="Regions or token ranges.")
    bytes: int | None = Field(default=None, description="Of its tables, on disk.")


class Placement(SummaryPart):
    """Where the data of a database that grows lay before it was measured with this many nodes."""

    system: str
    nodes: int
    how: Literal["started", "grown"] = Field(
        description="Whether the cluster was loaded with this many nodes, or got them after that."
    )
    took_s: float | None = Field(default=None, description="Until the new nodes had their share; null if none came.")
    shares: dict[str, NodeShare] = Field(description="By the address of each node.")


@dataclass(frozen=True)
class MapReduceResult(Result[MapReduceManifest]):
    """A MapReduce study on disk."""

    loads: dict[str, LoadedRows]
    executions: list[Execution]
    placements: list[Placement]

    @property
    def complete(self) -> list[CompleteExecution]:
        """The executions that ended with results."""
        return [execution for execution in self.executions if isinstance(execution, CompleteExecution)]

    @property
    def failed(self) -> list[FailedExecution]:
        """The executions that failed."""
        return [execution for execution in self.executions if isinstance(execution, FailedExecution)]


class MapReduceWriter(ManifestWriter[MapReduceManifest]):
    """Writes what belongs to the study as a whole, and each execution."""

    def write_execution(self, execution: Execution) -> None:
        """Writes an execution that has ended."""
        self._write_next(EXECUTIONS_FOLDER, execution)

    def write_placement(self, placement: Placement) -> None:
        """Writes where the data of a database lie."""
        self._write_next(PLACEMENTS_FOLDER, placement)

    def forget_failed(self) -> None:
        """Removes the executions that failed: they are carried out again."""
        for file in stored_in(self.folder / EXECUTIONS_FOLDER, "*.json"):
            if isinstance(_execution_in(file), FailedExecution):
                remove_result(file)

    def _write_next(self, kind: str, record: SummaryPart) -> None:
        """Appends a record to those that are there."""
        folder = self.folder / kind
        folder.mkdir(exist_ok=True)
        number = max((int(file.stem) for file in stored_in(folder, "*.json")), default=0) + 1
        write_result(folder / f"{number:04}.json", record.model_dump_json(indent=2) + "\n")


def continued(before: MapReduceManifest, after: MapReduceManifest, folder: Path) -> MapReduceManifest:
    """The manifest with which a study continues: for the same in all but its budget. Raises UsageError."""
    for key in ("dataset", "systems", "words", "workers", "executions", "workload", "hosts"):
        if getattr(before.plan, key) != getattr(after.plan, key):
            raise UsageError(f"--resume: the study in {folder} has other {key}; give the same options, or another --out")
    plan = before.plan.model_copy(update={"budget_s": after.plan.budget_s})
    now = {"status": "running", "reason": None, "process": after.process, "finished": None}
    return before.model_copy(update={"plan": plan, **now})


def read_mapreduce(folder: Path) -> MapReduceResult:
    """A MapReduce study. Raises UsageError when there is none, DamagedResultsError."""
    load = folder / LOAD_FILE
    return MapReduceResult(
        folder,
        read_manifest(folder, MapReduceManifest),
        read_json(load) if is_stored(load) else {},
        [_execution_in(file) for file in stored_in(folder / EXECUTIONS_FOLDER, "*.json")],
        [read_model(file, Placement) for file in stored_in(folder / PLACEMENTS_FOLDER, "*.json")],
    )


def _execution_in(file: Path) -> Execution:
    content = read_json(file)
    # Earlier versions said in words, too, whether Spark executed it.
    content.pop("means", None)
    if content.get("failed"):
        return as_model(file, content, FailedExecution)
    return as_model(file, content, CompleteExecution)
