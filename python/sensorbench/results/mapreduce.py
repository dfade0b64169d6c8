"""What the MapReduce study leaves: its manifest, how loading went, and one record for each execution, written when it ends."""

from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from sensorbench.results.described import LoadedRows
from sensorbench.results.files import write_result
from sensorbench.results.planned import MapReduceManifest
from sensorbench.results.reader import Result, read_manifest
from sensorbench.results.stored import as_model, is_stored, read_json, stored_in
from sensorbench.results.summary.part import SummaryPart
from sensorbench.results.writer import LOAD_FILE, ManifestWriter

EXECUTIONS_FOLDER = "executions"


class JobRecord(SummaryPart):
    """One of the two jobs for a word. What Spark counts is null where it was not Spark that executed it."""

    name: str
    duration_s: float
    executed_s: float | None = Field(default=None, description="The time in which a stage was executed.")
    map_tasks: int | None = None
    tasks: int | None = None
    run_s: float | None = None
    deserialize_s: float | None = None
    read_rows: int | None = Field(default=None, description="Rows that came through the connector, counted one by one.")
    read_bytes: int | None = Field(default=None, description="Bytes of their text.")
    spark_read_rows: int | None = Field(default=None, description="Spark's own counter; null where the connector fills none.")
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


class CompleteExecution(_ExecutionRecord):
    """An execution that ended with results. The parts of the set-up are null for a native job."""

    failed: None = None
    context_s: float | None = None
    executors_s: float | None = None
    launch_s: float | None = None
    total_s: float = Field(description="From the submission to the final result, for the first word.")
    setup_s: float
    words: list[WordRecord]


class FailedExecution(_ExecutionRecord):
    """An execution that failed, and what the database, the connector or Spark says of it."""

    failed: str


Execution = CompleteExecution | FailedExecution


@dataclass(frozen=True)
class MapReduceResult(Result[MapReduceManifest]):
    """A MapReduce study on disk."""

    loads: dict[str, LoadedRows]
    executions: list[Execution]

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

    def __init__(self, folder: Path, manifest: MapReduceManifest) -> None:
        super().__init__(folder, manifest)
        self._executions = 0

    def write_execution(self, execution: Execution) -> None:
        """Writes an execution that has ended."""
        folder = self.folder / EXECUTIONS_FOLDER
        folder.mkdir(exist_ok=True)
        self._executions += 1
        write_result(folder / f"{self._executions:04}.json", execution.model_dump_json(indent=2) + "\n")


def read_mapreduce(folder: Path) -> MapReduceResult:
    """A MapReduce study. Raises UsageError when there is none, DamagedResultsError."""
    load = folder / LOAD_FILE
    return MapReduceResult(
        folder,
        read_manifest(folder, MapReduceManifest),
        read_json(load) if is_stored(load) else {},
        [_execution_in(file) for file in stored_in(folder / EXECUTIONS_FOLDER, "*.json")],
    )


def _execution_in(file: Path) -> Execution:
    content = read_json(file)
    # Earlier versions said in words, too, whether Spark executed it.
    content.pop("means", None)
    if content.get("failed"):
        return as_model(file, content, FailedExecution)
    return as_model(file, content, CompleteExecution)
