"""What stands beside results: everything that could change a figure. Secrets never do.

The JSON Schemas of these files are in `schemas/` beside this module (`json_schemas.py`).
"""

import os
from datetime import UTC, datetime
from typing import Annotated, Any, Generic, Literal, TypeVar

import psutil
from pydantic import BaseModel, ConfigDict, Field, model_validator

from sensorbench.results.as_written import AsWritten, with_present_run_keys
from sensorbench.results.described import Environment, TargetDescription
from sensorbench.results.engine_plan import KeptPlan
from sensorbench.results.engine_report import ErrorReport, ErrorTotals, LatencyTotals, OperationTotals
from sensorbench.results.ownership import new_id

FORMAT: Literal[2] = 2

# running: being written, or killed while it was · complete · interrupted by the user · failed · out of space: the disk was full
Status = Literal["running", "complete", "interrupted", "failed", "out of space"]

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
    """A phase of a run, as the engine reports it."""

    name: str
    start_ns: int | None
    end_ns: int | None
    started: int
    dropped: int
    operations: dict[str, OperationTotals]

    @property
    def length_s(self) -> float | None:
        """How long it was; None if it did not begin, or did not come to its end."""
        return None if self.start_ns is None or self.end_ns is None else (self.end_ns - self.start_ns) / 1e9


class GeneratorClock(_Part):
    """The clock of a load generator's host beside that of the controller, as it was sampled during the run. Latencies are measured by one
    clock each and need none of this.
    """

    offset_ns: int = Field(
        description="CLOCK_MONOTONIC of the host minus that of the controller when the run began. Times in the results are corrected by it."
    )
    wall_offset_ns: int = Field(description="The same of the time of day.")
    drift_ns: int = Field(description="How far the offset was from `offset_ns` at the end.")
    bound_ns: int = Field(
        description="No time of this load generator is wrong by more: the offset's distance from `offset_ns`, and half of the round trip that showed it."
    )
    samples: int = Field(description="How many samples that is; `status` has them.")


class GeneratorTotals(_Part):
    """A load generator of a run that several shared."""

    number: int = Field(description="From 1; `operations` have it as their column `generator`.")
    host: str = Field(description="The name of its host; `local`: a process of the controller's machine.")
    pid: int
    started: int
    dropped: int
    unknown: int = Field(
        description="Of a lost one, operations that it had started when it was last heard of, and of which nothing more is known."
    )
    lost: str | None = Field(description="How it was lost; null if it came to its end.")
    start_lag_ns: int = Field(description="How long after the common start it began; 0 where it was ready before.")
    timer_lag_ns: LatencyTotals | None = Field(description="How late it was where it waited for an intended start.")
    client_cpu_ns: int
    duration_ns: int
    clock: GeneratorClock | None = Field(default=None, description="The clock of its host; null if it has the controller's.")


class RunTotals(_Part):
    """A run as a whole, as the engine reports it."""

    phases: list[PhaseFigures]
    errors: list[ErrorTotals]
    timer_lag_ns: LatencyTotals | None
    client_cpu_ns: int
    process_cpu_ns: int
    clock_drift: float
    duration_ns: int
    generators: list[GeneratorTotals] = Field(
        default=[], description="The load generators, where several shared the run; `phases` are the sum of what they reported."
    )


class VariantManifest(_Part):
    """One variant of a comparison: a target, a schema and its parameters."""

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
    schema_digest: str | None = Field(
        default=None,
        description="SHA-256 of what the schema file says, whatever it is called; null in results of earlier versions.",
    )
    label: str = Field(default="", description="What distinguishes it from variants with the same target and schema.")
    only_loads: bool = Field(default=False, description="It was loaded and inspected, but not queried.")
    concurrency: int | None = Field(
        default=None, description="Operations in flight, where they are not as many as the workload says."
    )
    operations: list[str] | None = Field(
        default=None, description="The operations that it can answer; null if it can answer all."
    )
    operations_share: float = Field(default=1.0, description="Share of the workload's operations that it executed in each run.")
    row_bytes: float | None = Field(
        default=None, description="Bytes of a whole row as the schema means it at the dataset's scale."
    )
    promises: str | None = Field(default=None, description="What its database promises who reads and writes registers there.")
    statements: dict[str, Any] = {}

    @property
    def is_whole(self) -> bool:
        """Whether it was asked everything."""
        return not self.only_loads and self.operations is None


class ManifestHead(_Part):
    """What all manifests begin with."""

    format: Literal[2] = FORMAT
    kind: str
    status: Status = "running"
    reason: str | None = Field(default=None, description="Why it is not complete; null if it is.")
    process: Process
    created: datetime

    @property
    def state(self) -> Status:
        """How it ended. What still says `running` and whose process is gone was interrupted."""
        return "interrupted" if self.status == "running" and not self.process.is_alive() else self.status


class RunManifest(ManifestHead):
    """`manifest.json` of a run of the engine."""

    kind: Literal["run"] = "run"
    id: str | None = Field(
        default=None, description="The id of the results folder, where the run is all there is in it, as earlier versions had it."
    )
    variant: VariantManifest
    repetition: int = Field(description="The number of the repetition, from 1.")
    temperature: Literal["cold", "warm", "hot"]
    seed: int
    operations: list[str]
    phases: list[str]
    plan: Annotated[KeptPlan, AsWritten]
    description: Annotated[TargetDescription, AsWritten] = {}
    totals: RunTotals | None = None

    _present_keys = model_validator(mode="before")(with_present_run_keys)

    @property
    def phase_figures(self) -> list[PhaseFigures]:
        """Its phases, as the engine counted at the end; none where it could not."""
        return self.totals.phases if self.totals else []

    @property
    def measured(self) -> list[PhaseFigures]:
        """Of these, the one whose operations count."""
        return [phase for phase in self.phase_figures if phase.name == MEASURE]

    @property
    def errors(self) -> list[ErrorReport]:
        """How operations failed, as the engine counted at the end."""
        return self.totals.errors if self.totals else []

    def ended(self, status: Status, totals: RunTotals | None, reason: str | None = None) -> "RunManifest":
        """The manifest of the run after its end. A warm-up in which no operation began, as at a low rate, leaves it as warm as it was."""
        ended = self.model_copy(update={"status": status, "reason": reason, "totals": totals})
        is_heated = totals is None or any(phase.started for phase in totals.phases if phase.name != MEASURE)
        return ended if is_heated or self.temperature != "hot" else ended.model_copy(update={"temperature": "warm"})


Planned = TypeVar("Planned", bound=BaseModel)


class BaseManifest(ManifestHead, Generic[Planned]):
    """`manifest.json` of a benchmark. All kinds have these keys; `plan` has what is the kind's own."""

    id: str = Field(
        default_factory=new_id,
        description="The id of the results folder, which stands in the ownership markers of what it created.",
    )
    title: str
    finished: datetime | None = None
    version: str
    command: list[str]
    environment: Annotated[Environment, AsWritten]
    variants: list[VariantManifest] = Field(description="What is measured; empty if that follows from the plan.")
    plan: Planned


def now() -> datetime:
    """The present, to the second."""
    return datetime.now(UTC).replace(microsecond=0)
