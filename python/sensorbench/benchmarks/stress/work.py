"""What a stress run does at a target, whatever the rate."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from sensorbench._engine import Target
from sensorbench.progress import ProgressReporter
from sensorbench.results.described import DescribedWork
from sensorbench.results.engine_plan import OperationsPlan
from sensorbench.results.ownership import Intent, Owner
from sensorbench.runner import ALONE, LoadGenerators, Servers, Variant


@dataclass(frozen=True)
class Means:
    """What a target is made ready with.

    Attributes:
        servers: those that were started.
        folder: where a run that puts data there goes.
        progress: reports progress.
        owner: in whose name a namespace is created.
        generators: load generators that share such a run.

    """

    servers: Servers
    folder: Path
    progress: ProgressReporter
    owner: Owner
    generators: LoadGenerators = ALONE


class Work(ABC):
    """Operations with their parameters, and how a target is made ready for them."""

    # The target with the schema that lies there.
    variant: Variant
    # Titles of the operations by name.
    operations: dict[str, str]
    # What results say of the data, the mix and the choice.
    described: DescribedWork

    @property
    @abstractmethod
    def seed(self) -> int:
        """Seed of all operations."""

    @abstractmethod
    def plan(self) -> OperationsPlan:
        """The plan for the engine, without phases and without what the load decides: concurrency, threads, timeout_s."""

    @abstractmethod
    def tables(self) -> list[pa.Table]:
        """What the parameter sources of the plan take rows from."""

    @abstractmethod
    def intent(self, target: Target) -> Intent:
        """What is wanted of the target's namespace, seen what is there."""

    @abstractmethod
    def make_ready(self, at: Variant, target: Target, means: Means) -> None:
        """Puts there what the operations need.

        Raises FailedError and EngineError.
        """
