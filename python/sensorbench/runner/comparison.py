"""A comparison: what is asked for, what was found to be sound, and what is up."""

from dataclasses import dataclass, field
from typing import Literal

import duckdb

from sensorbench import _engine
from sensorbench.dataset import Dataset
from sensorbench.results import PlannedBlocks, ServerResources
from sensorbench.results.estimate import Budget, PartEstimate
from sensorbench.runner.generators.sharing import ALONE, LoadGenerators
from sensorbench.runner.plan import Parameters
from sensorbench.runner.servers import Servers
from sensorbench.runner.variants import Variant
from sensorbench.runner.workload import Workload
from sensorbench.schemas import Operations
from sensorbench.schemas.engine_types import DriverSchema
from sensorbench.schemas.types import ValueType

DATA_FOLDER = "data"


@dataclass(frozen=True)
class StallTest:
    """One stall of an embedded database, which a closed and an open loop measure after everything else."""

    variant: str
    operation: str
    rate_per_s: float
    duration: str
    stall_after_s: float
    stall_s: float


@dataclass(frozen=True)
class Comparison:
    """What is to be compared."""

    kind: Literal["experiment", "study"]
    name: str
    title: str
    dataset: Dataset
    operations_name: str
    operations: Operations
    variants: list[Variant]
    workload: Workload
    metric: str
    # A variant that fails is left out, and said to have failed, instead of ending the whole work.
    continue_on_error: bool = False
    # That variants fail is what is looked for: also where all of them do, the comparison is complete.
    expects_failures: bool = False
    # How long the rows of a variant may take to go in, in s; one that takes longer has failed.
    max_load_s: float | None = None
    # The readings of one sensor are encoded as batches, too, by each encoding.
    encodings: bool = False
    # The part of a study that it is; empty if there is but one comparison.
    part: str = ""
    # Outdated versions of databases are ranked against current ones.
    include_outdated: bool = False
    # Servers that can write a snapshot do so when a variant is loaded, for what that takes.
    snapshots: bool = False
    # What each server that is started may use; as the lab has it where nothing is said.
    resources: ServerResources = field(default_factory=ServerResources)
    # Variants that make no sense on the dataset, with why not: they are not among the others.
    refused: dict[str, str] = field(default_factory=dict)
    # The load generators that share each run.
    generators: LoadGenerators = ALONE
    # How it is cut into blocks, during each of which the server of one variant is up; all of them are up where there are none.
    blocks: PlannedBlocks | None = None
    # What it was made of, where a budget was given for it alone.
    budget: Budget | None = None
    # What a pilot found that it takes, where there was one.
    estimate: PartEstimate | None = None
    # Shows coordinated omission besides.
    stall: StallTest | None = None


@dataclass(frozen=True)
class ValidatedComparison:
    """A comparison whose parts were all found to be sound."""

    comparison: Comparison
    workbench: duckdb.DuckDBPyConnection
    names: list[str]
    parameters: Parameters
    # As the engine takes them, by variant.
    schemas: dict[str, DriverSchema]
    columns: dict[str, dict[str, dict[str, ValueType]]]


@dataclass(frozen=True)
class ConnectedComparison(ValidatedComparison):
    """The same with all its servers up."""

    targets: dict[str, _engine.Target]
    servers: Servers
