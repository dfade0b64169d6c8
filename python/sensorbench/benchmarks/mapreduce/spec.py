"""What is asked of the MapReduce study."""

from collections.abc import Sequence
from dataclasses import dataclass

from sensorbench.dataset import Dataset
from sensorbench.hosts.pool import HostPool
from sensorbench.lifecycle import Deadline
from sensorbench.runner import TargetSpec
from sensorbench.spark.inverted_index import Word


@dataclass(frozen=True)
class MapReduceSpec:
    """The job over the articles of a dataset in each target, and in files if `with_files`, with each number of workers, `executions` times for each word.

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
    # Whether databases that can have as many nodes as Spark has workers.
    grows: bool = False
    # Whether it continues with what is in its folder, and until when it does.
    resume: bool = False
    deadline: Deadline | None = None
    # Those of the nodes of targets that are started and can be there.
    hosts: HostPool | None = None
    # Whether what an earlier work left at a target may be removed.
    replace: bool = False
    # Whether what this work created there is removed when it is complete.
    drop_after: bool = False

    @property
    def splits(self) -> int:
        """Into how many parts a table is split by connectors that take their number: the same for any number of workers."""
        return 2 * max(self.workers) * self.cores

    @property
    def borders(self) -> list[int]:
        """Where parts of the table of articles begin, but for the first, in databases whose parts are the splits: ids, which count from 1."""
        rows = self.dataset.describe().readings
        return sorted({1 + rows * part // self.splits for part in range(1, self.splits)} - {1})

    @property
    def stages(self) -> list[list[int]]:
        """Numbers of workers that are measured one after the other, each on clusters of its own size; those of one stage are interleaved."""
        return [[workers] for workers in self.workers] if self.grows else [list(self.workers)]
