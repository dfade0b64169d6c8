"""What stands beside results: everything that could change a figure. Secrets never do.

The JSON Schemas of these files are in `schemas/` beside this module (`json_schemas.py`).
"""

import os
from datetime import UTC, datetime
from typing import Any, Literal

import psutil
from pydantic import BaseModel, ConfigDict, Field

from sensorbench.results.ownership import new_id

FORMAT = 1

# running: being written, or killed while it was · complete · interrupted by the user · incomplete: the disk was full · failed
State = Literal["running", "complete", "interrupted", "incomplete", "failed"]

MANIFEST_FILE = "manifest.json"
# Of operations that ended, by the engine's words.
OUTCOMES = ("ok", "error", "timeout", "cancelled")
# The phase of a run whose operations count.
MEASURE = "measure"


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Process(_Part):
    """Who writes: a manifest that says `running` and whose process is gone was interrupted."""

    pid: int
    started: float

    @classmethod
    def this(cls) -> "Process":
        """The process that runs this."""
        return cls(pid=os.getpid(), started=psutil.Process().create_time())

    def is_alive(self) -> bool:
        """Whether it still runs."""
        try:
            return bool(psutil.Process(self.pid).create_time() == self.started)
        except psutil.NoSuchProcess:
            return False


class PhaseFigures(_Part):
    """A phase of a run, as the engine tells it."""

    name: str
    start_ns: int | None
    end_ns: int | None
    started: int
    unstarted: int
    operations: dict[str, dict[str, Any]]


class Whole(_Part):
    """A run as a whole, as the engine tells it."""

    phases: list[PhaseFigures]
    errors: list[dict[str, Any]]
    timer_lag_ns: dict[str, Any] | None
    client_cpu_ns: int
    process_cpu_ns: int
    clock_drift: float
    duration_ns: int


class SettingManifest(_Part):
    """One setting of a comparison: a target, a schema and its parameters."""

    id: str
    target: str
    database: str
    system: str = Field(default="", description="What the study calls the database with these settings and of this size.")
    embedded: bool
    url: str
    schema_name: str
    schema_summary: str
    schema_file: str
    schema_parameters: dict[str, Any] = {}
    label: str = Field(default="", description="What tells it from settings with the same target and schema.")
    only_loads: bool = Field(default=False, description="It was loaded and looked at, but not asked.")
    in_flight: int | None = Field(
        default=None, description="Operations in flight, where they are not as many as the workload says."
    )
    operations_share: float = Field(default=1.0, description="Share of the workload's operations that it executed in each run.")
    promises: str | None = Field(default=None, description="What its database promises who reads and writes registers there.")
    statements: dict[str, Any] = {}


class RunManifest(_Part):
    """`manifest.json` of a run."""

    format: int = FORMAT
    id: str | None = Field(default=None, description="The id of the results folder, where the run is all there is in it.")
    kind: Literal["run"] = "run"
    state: State = "running"
    reason: str | None = None
    process: Process
    created: datetime
    setting: SettingManifest
    repeat: int
    temperature: Literal["cold", "warm", "hot"]
    seed: int
    operations: list[str]
    phases: list[str]
    plan: dict[str, Any]
    description: dict[str, Any] = {}
    whole: Whole | None = None


class OperationManifest(_Part):
    """What is asked, in words."""

    title: str
    question: str
    writes: bool
    variant_of: str | None = Field(default=None, description="The operation that it is a variant of.")
    variant: str | None = None
    share: float | None = Field(default=None, description="The share of all rows that a variant is about.")


class WorkManifest(_Part):
    """What the manifests of whole works share."""

    format: int = FORMAT
    id: str = Field(
        default_factory=new_id,
        description="The id of the results folder, which stands in the ownership markers of what it created.",
    )
    title: str
    state: State = "running"
    reason: str | None = None
    process: Process
    created: datetime
    finished: datetime | None = None
    version: str
    command: list[str]
    workload: dict[str, Any]
    environment: dict[str, Any]


class ComparisonManifest(WorkManifest):
    """`manifest.json` of an experiment or study: settings that are compared under one workload."""

    kind: Literal["experiment", "study"]
    name: str
    part: str = Field(default="", description="The part of a study that it is, where the study has parts.")
    dataset: dict[str, Any]
    operations: dict[str, OperationManifest]
    metric: str
    settings: list[SettingManifest]
    order: list[list[str]] = Field(default=[], description="For each repeat, the settings in the order in which they ran.")


class OneSettingManifest(WorkManifest):
    """What the manifests of works on one setting share."""

    kind: str
    setting: SettingManifest
    operations: dict[str, str] = Field(description="What is asked, in words, by name.")


class StressManifest(OneSettingManifest):
    """`manifest.json` of a stress run: one target under rates that rise, or are searched."""

    kind: Literal["stress"] = "stress"
    objective: dict[str, Any] | None = None
    search: dict[str, Any] | None = Field(default=None, description="How the highest rate was searched, where it was.")


class ElasticityManifest(OneSettingManifest):
    """`manifest.json` of a work on elasticity: one cluster that is changed under load, one change a run."""

    kind: Literal["elasticity"] = "elasticity"
    dataset: dict[str, Any]
    changes: list[dict[str, Any]] = Field(description="What was to be done to the cluster, in this order.")


class TuneManifest(OneSettingManifest):
    """`manifest.json` of a search for better settings of a server."""

    kind: Literal["tune"] = "tune"
    goal: dict[str, Any] = Field(description="The figure that is to become better.")
    space: dict[str, Any] = Field(description="Which settings may take which values.")
    left_out: list[str] = Field(description="Settings of the space that trade durability for speed, and were left out for that.")
    start: dict[str, str] = Field(description="The settings that count as the default; all others are left to the server.")
    seed: int
    budget: dict[str, Any]
    pairs: int = Field(description="Pairs of runs of the confirmation.")


class CellManifest(_Part):
    """A cell of a study of factors: a configuration under a load, and which levels (part, level) it is."""

    load: str
    settings: dict[str, str] = Field(description="All settings, as in the server's own file.")
    apart: bool = Field(description="Measured after all others, in turn with those that are so, too.")
    levels: list[tuple[str, str]]


class FactorsManifest(WorkManifest):
    """`manifest.json` of a study of factors: levels of settings, each on fresh servers, under the same loads."""

    kind: Literal["factors"] = "factors"
    name: str
    target: str
    nodes: int | None
    parts: list[str]
    cells: dict[str, CellManifest]
    scale: float
    sizes: dict[str, float] = Field(description="By which factor each setting that is a size was multiplied.")
    step_s: float
    rounds: int
    seed: int
    reached: dict[str, float] = Field(default={}, description="Reads and writes a second that the default takes, each alone.")
    rates: dict[str, list[float]] = Field(default={}, description="The rates of each load, operations a second.")


class MapReduceManifest(WorkManifest):
    """`manifest.json` of the MapReduce study: one job over the same articles in several systems, with one worker and more."""

    kind: Literal["mapreduce"] = "mapreduce"
    name: str = "mapreduce"
    dataset: dict[str, Any]
    systems: dict[str, dict[str, Any]] = Field(
        description="Of each system: its database, how Spark gets there, and how the database does the job itself (own_means)."
    )
    words: list[dict[str, Any]] = Field(
        description="What is looked for, with its frequency; the first is that of a fresh application."
    )
    workers: list[int]
    executions: int


def now() -> datetime:
    """The present, to the second."""
    return datetime.now(UTC).replace(microsecond=0)
