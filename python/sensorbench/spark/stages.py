"""What Spark itself says of the stages of a job."""

from dataclasses import dataclass
from typing import Any

# Spark's word (org.apache.spark.scheduler.TaskLocality).
_AT_ITS_NODE = "NODE_LOCAL"


@dataclass(frozen=True)
class Stage:
    """One stage: its tasks, when it was executed (s since 1970), and Spark's own counters; 0 where a connector does not report.

    `local_tasks` are those that were executed at the node that has their split, as the split names it. Summed over its tasks: `run_s`, what they took, and `deserialize_s`, until executors knew what to do, getting jars among it.
    """

    id: int
    tasks: int
    local_tasks: int
    begun_s: float
    ended_s: float
    run_s: float
    cpu_s: float
    deserialize_s: float
    input_bytes: int
    input_records: int
    output_bytes: int
    output_records: int
    shuffle_read_bytes: int
    shuffle_write_bytes: int


@dataclass(frozen=True)
class Stages:
    """The stages of a job that were executed, in order."""

    stages: tuple[Stage, ...]

    @property
    def executed_s(self) -> float:
        """How long at least one of them was executed: the job without planning, asking for splits and committing."""
        total, until = 0.0, 0.0
        for stage in sorted(self.stages, key=lambda stage: stage.begun_s):
            total += max(0.0, stage.ended_s - max(until, stage.begun_s))
            until = max(until, stage.ended_s)
        return total

    @property
    def map_tasks(self) -> int:
        """Tasks of the stage that reads the table, one for each split."""
        return self._reading.tasks if self._reading else 0

    @property
    def local_map_tasks(self) -> int:
        """Those of them at the node that has their split."""
        return self._reading.local_tasks if self._reading else 0

    @property
    def _reading(self) -> Stage | None:
        """The first stage that has read anything, since some connectors look at the table in a stage of its own before. Of an empty table, the first."""
        return next((stage for stage in self.stages if stage.input_records), self.stages[0] if self.stages else None)


def stages_of(context: Any, group: str) -> Stages:
    """The executed stages of all jobs of Spark in a group, when Spark has noted them all."""
    java = context._jsc.sc()
    java.listenerBus().waitUntilEmpty()
    tracker, store = context.statusTracker(), java.statusStore()
    ids = sorted({stage for job in tracker.getJobIdsForGroup(group) for stage in tracker.getJobInfo(job).stageIds})
    attempts = [store.lastStageAttempt(stage) for stage in ids]
    return Stages(tuple(_stage(attempt, store) for attempt in attempts if str(attempt.status()) == "COMPLETE"))


def _stage(attempt: Any, store: Any) -> Stage:
    return Stage(
        id=attempt.stageId(),
        tasks=attempt.numTasks(),
        local_tasks=_local_tasks(attempt, store),
        begun_s=attempt.submissionTime().get().getTime() / 1e3,
        ended_s=attempt.completionTime().get().getTime() / 1e3,
        run_s=attempt.executorRunTime() / 1e3,
        cpu_s=attempt.executorCpuTime() / 1e9,
        deserialize_s=attempt.executorDeserializeTime() / 1e3,
        input_bytes=attempt.inputBytes(),
        input_records=attempt.inputRecords(),
        output_bytes=attempt.outputBytes(),
        output_records=attempt.outputRecords(),
        shuffle_read_bytes=attempt.shuffleReadBytes(),
        shuffle_write_bytes=attempt.shuffleWriteBytes(),
    )


def _local_tasks(attempt: Any, store: Any) -> int:
    """Tasks that got the node that they prefer. Those that prefer none, Spark says are local to their process."""
    tasks = store.taskList(attempt.stageId(), attempt.attemptId(), attempt.numTasks())
    return sum(str(tasks.apply(number).taskLocality()) == _AT_ITS_NODE for number in range(tasks.size()))
