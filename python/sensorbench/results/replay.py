"""What a replay leaves: its manifest, the run of the engine, and how that compares with what was recorded."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field

from sensorbench.results.files import write_result
from sensorbench.results.manifest import MANIFEST_FILE, BaseManifest
from sensorbench.results.reader import Result, RunResult, read_manifest, read_tolerant_run
from sensorbench.results.stored import is_stored, read_model
from sensorbench.results.summary.part import SummaryPart

# Below the folder of the results.
RUN_FOLDER = Path("runs") / "001"
# Of a second target, whose answers are compared.
OTHER_RUN_FOLDER = Path("runs") / "002"
COMPARED_FILE = "compared.json"
# Where writes of a replay may go: nowhere, into the namespace of a results folder, or wherever the owner of the data lets them.
WritePermission = Literal["none", "namespace", "owner"]


class PlannedTemplate(SummaryPart):
    """A statement of the trace with its literals taken out."""

    name: str = Field(description="What the operations of the run are called that are of it.")
    kind: Literal["read", "write", "begin", "commit", "rollback", "other"]
    statement: str
    statements: int = Field(description="How many the trace has of it.")
    is_left_out: bool = Field(description="None of its statements were replayed (--reads-only).")
    keyspace: str | None = Field(default=None, description="The keyspace that it was recorded in, where the trace says so.")
    consistency: str | None = Field(default=None, description="The level that it was recorded with, where the trace says so.")


class PlannedReplay(SummaryPart):
    """What was replayed, and how."""

    trace: str = Field(description="The folder of the trace, as it was named.")
    trace_database: str
    rows: int = Field(description="Statements in the trace.")
    statements: int = Field(description="Statements to replay, of all copies.")
    sessions: int = Field(description="Sessions in the trace that have something to replay.")
    recorded_s: float = Field(description="From the first arrival in the trace to the last.")
    templates: list[PlannedTemplate]
    speed: float | None = Field(description="How many times as fast as recorded; null: as fast as the sessions' order allows.")
    scale_rate: float = Field(description="How many times the recorded sessions were replayed.")
    connections: int = Field(description="The limit of connections that are open at a time.")
    timeout_s: float
    writes: WritePermission


class ReplayManifest(BaseManifest[PlannedReplay]):
    """`manifest.json` of a replay."""

    kind: Literal["replay"] = "replay"


class ComparedTemplate(SummaryPart):
    """Statements of a template: how those that were replayed came out, and how the same ones had come out when they were recorded."""

    template: str
    replayed: int = Field(description="Statements that ended, whatever way.")
    recorded_errors: int
    replayed_errors: int = Field(description="Errors and timeouts of the replay.")
    new_errors: int = Field(description="They failed in the replay alone.")
    gone_errors: int = Field(description="They failed when recorded, and not in the replay.")
    rows_compared: int = Field(description="Statements that succeeded both times, and of which the trace has the number of rows.")
    rows_differ: int = Field(description="Of these, those with another number of rows.")
    recorded_p50_s: float | None = Field(description="Median of the recorded durations; null if the trace has none.")
    recorded_p99_s: float | None


class ComparedAnswers(SummaryPart):
    """Answers to the statements of a template at two targets."""

    template: str
    compared: int = Field(description="Statements that both targets answered.")
    rows_differ: int = Field(description="Of these, those with another number of rows.")
    values_differ: int = Field(description="Of these, those with as many rows, but other values in them.")


class ReplayComparison(SummaryPart):
    """`compared.json`: the replay beside what was recorded, statement by statement."""

    templates: list[ComparedTemplate]
    answers: list[ComparedAnswers] | None = Field(default=None, description="Null where there was one target alone.")


@dataclass(frozen=True)
class ReplayResult(Result[ReplayManifest]):
    """A replay on disk. The run is None if it was not begun, the comparison where the replay was cut short."""

    run: RunResult | None
    compared: ReplayComparison | None


def read_replay(folder: Path) -> ReplayResult:
    """A replay. Raises UsageError when there is none, DamagedResultsError."""
    run, compared = folder / RUN_FOLDER, folder / COMPARED_FILE
    return ReplayResult(
        folder,
        read_manifest(folder, ReplayManifest),
        read_tolerant_run(run) if is_stored(run / MANIFEST_FILE) else None,
        read_model(compared, ReplayComparison) if is_stored(compared) else None,
    )


def write_comparison(folder: Path, compared: ReplayComparison) -> None:
    """Writes how a replay compares with what was recorded."""
    write_result(folder / COMPARED_FILE, compared.model_dump_json(indent=1) + "\n")
