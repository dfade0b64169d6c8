"""What is asked of the MapReduce study."""

from collections.abc import Sequence
from dataclasses import dataclass

from sensorbench.dataset import Dataset
from sensorbench.runner import TargetSpec
from sensorbench.spark.inverted_index import Word


@dataclass(frozen=True)
class MapReduceSpec:
    """The job over the articles of a dataset in each target, and in files if `with_files`, with each number of workers, `executions` times.

    `spark`: the master; the lab starts one where it is None. `words`: what is looked for; chosen from the dataset where there are none.
    """

    targets: Sequence[TargetSpec]
    with_files: bool
    dataset: Dataset
    words: Sequence[Word]
    workers: Sequence[int]
    executions: int
    cores: int
    memory: str
    spark: str | None = None
    # Whether what an earlier work left at a target may be removed.
    replace: bool = False
    # Whether what this work created there is removed when it is complete.
    drop_after: bool = False

    @property
    def splits(self) -> int:
        """Into how many parts a table is split by connectors that have to be told: the same for any number of workers."""
        return 2 * max(self.workers) * self.cores
